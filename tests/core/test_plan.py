"""Properties of the plan: whatever was observed, it decides only what may be decided, and each job for itself."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.curve import best, curve
from evalstopd.core.detectors import Stop
from evalstopd.core.identity import Sighting
from evalstopd.core.intent import Intent
from evalstopd.core.model import Job, JobKey, Life, Mode, Phase, Point, Rung
from evalstopd.core.plan import Case, Known, Stamp, plan, verdicts
from evalstopd.core.rules import Standing
from evalstopd.core.watch import Pin, PinState, Terms, Watch
from evalstopd.core.wishes import Wishes

NOW_S = 5000.0
STAMP = Stamp(NOW_S, "hash", "test")
RULES = ("k-declines:k=1", "k-declines:k=2", "recommended", "drop-test-safe", "never", "patience:patience=2")
scores = st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.8]) | st.floats(allow_nan=True)


def points(lives: st.SearchStrategy[int]) -> st.SearchStrategy[list[Point]]:
    made = st.builds(
        Point,
        run_id=st.sampled_from(["r1", "r2"]),
        step=st.integers(0, 12),
        value=scores,
        timestamp_ms=st.integers(0, 50),
        life=lives,
        arrived_s=st.sampled_from([NOW_S - 60, NOW_S]),
    )
    return st.lists(made, max_size=12)


@st.composite
def cases(draw: st.DrawFn, number: int = 1) -> Case:
    restarts = draw(st.integers(0, 1))
    key = JobKey("c", str(number), 1001, 100)
    life = Life(restarts, 100 + restarts)
    job = Job("c", str(number), number, 1001, "alice", Phase.RUNNING, "RUNNING", life.submitted_s, 200, restarts, 8)
    terms = Terms(draw(st.sampled_from(Rung)), draw(st.sampled_from(RULES)), "score", draw(st.sampled_from(Mode)))
    watch = Watch(key, life, first_s=150.0, terms=terms, run_id="r1", two_way=draw(st.booleans()), started_s=200.0)
    found = draw(points(st.integers(-1, restarts)))
    wishes = Wishes(run_id="r1", keep=draw(st.booleans()))
    return Case(
        sighting=Sighting(key, job, watch),
        watch=watch,
        standing=Standing(terms, "test"),
        wishes=wishes,
        evals=curve(found),
        proof="comment",
    )


@st.composite
def pins(draw: st.DrawFn, case: Case) -> tuple[Pin, ...]:
    steps = draw(st.lists(st.sampled_from([each.step for each in case.evals] or [0]), unique=True, max_size=3))
    states = st.sampled_from(PinState)
    return tuple(Pin(case.watch.key, step, 0.5, draw(states), 1.0, draw(st.integers(0, 1))) for step in steps)


@st.composite
def knowledge(draw: st.DrawFn, case: Case) -> Known:
    """What may have been decided of a job before, in any combination."""
    key = case.watch.key
    return Known(
        pins={key: draw(pins(case))},
        open_intents={},
        triggered=draw(st.sampled_from([{}, {key: 3}, {key: 12}])),
        booked=draw(st.sampled_from([frozenset(), frozenset([key])])),
        killed=draw(st.booleans()),
    )


situations = cases().flatmap(lambda case: st.tuples(st.just(case), knowledge(case)))


@given(situations)
def test_what_is_decided_may_be_decided(situation: tuple[Case, Known]) -> None:
    case, known = situation
    found = plan([case], known, STAMP)
    terms, life = case.standing.terms, case.watch.life
    for stop in (*found.intents, *found.would_be):
        evidence = stop.evidence
        assert not case.wishes.keep
        assert stop.life == life
        trigger = next(each for each in case.evals if each.step == evidence.trigger_step)
        assert trigger.life == life.restarts
        seen = [each for each in case.evals if each.step <= trigger.step]
        assert isinstance(verdicts(seen, terms)[-1], Stop)
        assert evidence.steps == tuple(each.step for each in seen)
        assert evidence.scores == tuple(each.score for each in seen)
        assert evidence.rule == terms.rule
        top = best(seen, terms.mode)
        assert top is not None
        assert evidence.best_step == top.step
    for intent in found.intents:
        assert intent.rung is terms.rung is not Rung.OBSERVE
        assert intent.rung >= Rung.WARN
        assert not known.killed
        assert intent.evidence.trigger_step > known.triggered.get(case.watch.key, -1)
        assert intent.not_before_s >= NOW_S + terms.notice_s
        top = best(case.evals, terms.mode)
        assert top is not None
        assert top.step <= intent.evidence.trigger_step
    if found.would_be:
        assert terms.rung is Rung.OBSERVE
        assert case.watch.key not in known.booked


@given(situations)
def test_below_warn_nothing_of_the_users_is_touched(situation: tuple[Case, Known]) -> None:
    case, known = situation
    found = plan([case], known, STAMP)
    if case.standing.terms.rung < Rung.WARN:
        assert found.intents == ()
        assert found.pins == ()
    if case.standing.terms.rung is Rung.OFF:
        assert found.would_be == ()


@given(situations)
def test_the_same_picture_gives_the_same_plan(situation: tuple[Case, Known]) -> None:
    case, known = situation
    assert repr(plan([case], known, STAMP)) == repr(plan([case], known, STAMP))


@given(situations)
def test_beside_an_open_intent_nothing_more_is_decided(situation: tuple[Case, Known]) -> None:
    case, known = situation
    first = plan([case], known, STAMP)
    opened: dict[JobKey, Intent] = {intent.key: intent for intent in first.intents}
    booked = known.booked | {stop.key for stop in first.would_be}
    again = plan([case], replace(known, open_intents=opened, booked=booked), STAMP)
    if first.intents or first.would_be:
        assert (again.intents, again.would_be) == ((), ())


@given(situations)
def test_after_an_intent_was_given_up_only_a_later_eval_decides_anew(situation: tuple[Case, Known]) -> None:
    case, known = situation
    first = plan([case], known, STAMP)
    triggered = {intent.key: intent.evidence.trigger_step for intent in first.intents}
    again = plan([case], replace(known, triggered={**known.triggered, **triggered}), STAMP)
    steps = {intent.evidence.trigger_step for intent in first.intents}
    assert all(intent.evidence.trigger_step > max(steps) for intent in again.intents if steps)


@given(cases(1), cases(2), st.data())
def test_no_job_sways_another(one: Case, other: Case, data: st.DataObject) -> None:
    mine, theirs = data.draw(knowledge(one)), data.draw(knowledge(other))
    known = Known(
        pins={**mine.pins, **theirs.pins},
        open_intents={},
        triggered={**mine.triggered, **theirs.triggered},
        booked=mine.booked | theirs.booked,
        killed=mine.killed,
    )
    alone = [plan([case], known, STAMP) for case in (one, other)]
    both = plan([one, other], known, STAMP)
    assert repr(both.intents) == repr((*alone[0].intents, *alone[1].intents))
    assert repr(both.would_be) == repr((*alone[0].would_be, *alone[1].would_be))
    assert repr(both.watches) == repr((*alone[0].watches, *alone[1].watches))


@given(situations)
def test_a_pin_is_wanted_for_the_best_alone_and_once(situation: tuple[Case, Known]) -> None:
    case, known = situation
    key = case.watch.key
    found = plan([case], known, STAMP).pins
    top = best(case.evals, case.standing.terms.mode)
    assert all(top is not None and pin.step == top.step for pin in found)

    kept = {pin.step: pin for pin in (*known.pins[key], *found)}
    assert plan([case], replace(known, pins={key: tuple(kept.values())}), STAMP).pins == ()
