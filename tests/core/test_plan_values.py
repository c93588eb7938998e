"""The plan, case by case: what a stop says, when it is decided, what is pinned, and which checkpoint is chosen."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from evalstopd.core.corroborate import NoLog, OwnerLog
from evalstopd.core.detectors import KEEP_GOING, Declining, Stop
from evalstopd.core.identity import Sighting
from evalstopd.core.intent import Evidence, Intent, WouldBeStop
from evalstopd.core.model import Eval, Job, JobKey, Life, Mode, Phase, Point, Rung, StopAction
from evalstopd.core.plan import Case, Known, Plan, Stamp, declines, first_asked, plan, reason, verdicts
from evalstopd.core.rules import Named, Standing
from evalstopd.core.watch import EarlyWarning, Pin, PinState, Terms, Watch
from evalstopd.core.wishes import Signal, Wishes

NOW_S, EARLIER_S = 5000.0, 4900.0
STAMP = Stamp(NOW_S, "hash", "1.2")
KEY, LIFE = JobKey("c", "7", 1001, 100), Life(1, 200)
TERMS = Terms(Rung.ENFORCE, "k-declines:k=2", "acc", Mode.MAX, notice_s=60.0, action=StopAction.REQUEUE_HOLD)
JOB = Job(
    "c", "7", 7, 1001, "alice", Phase.RUNNING, "RUNNING", 200, 250, 1, 8, account="ml", nodes=("n1", "n2")
)  # fmt: skip
NOTHING = Known(pins={}, open_intents={}, triggered={}, booked=frozenset())
FALL = (1.0, 3.0, 2.0, 1.0)


def evals(*scores: float, life: int = 1, arrived_s: float = EARLIER_S, first: int = 10) -> tuple[Eval, ...]:
    return tuple(Eval(first + 10 * at, score, None, life, "r", arrived_s) for at, score in enumerate(scores))


def case(points: Sequence[Eval] = evals(*FALL), **terms: object) -> Case:
    under = replace(TERMS, **terms)  # type: ignore[arg-type]
    watch = Watch(KEY, LIFE, 150.0, under, run_id="r", two_way=True, started_s=250.0)
    return Case(Sighting(KEY, JOB, watch), watch, Standing(under, "test"), Wishes(), tuple(points), "comment")


def decided(one: Case, known: Known = NOTHING) -> Plan:
    return plan([one], known, STAMP)


def triggers(one: Case, known: Known = NOTHING) -> list[int]:
    found = decided(one, known)
    return [each.evidence.trigger_step for each in (*found.intents, *found.would_be)]


EVIDENCE = Evidence(
    rule="k-declines:k=2",
    metric="acc",
    mode="max",
    run_id="r",
    proof="comment",
    two_way=True,
    steps=(10, 20, 30, 40),
    scores=FALL,
    trigger_step=40,
    best_step=20,
    best_score=3.0,
    k_before_step=20,
    declines=2,
    reason="the eval score fell 2 times in a row, from the best 3 at step 20 to 1 at step 40",
    settings_hash="hash",
    version="1.2",
)


def test_an_intent_holds_all_that_it_was_decided_on_and_whom_it_concerns() -> None:
    one = replace(case(), wishes=Wishes(signal=Signal("USR1", 30)))

    assert decided(one).intents == (
        Intent(
            KEY,
            LIFE,
            Rung.ENFORCE,
            EVIDENCE,
            created_s=NOW_S,
            not_before_s=NOW_S + 60.0,
            changed_s=NOW_S,
            signal=Signal("USR1", 30),
            user="alice",
            nodes=("n1", "n2"),
            gpus=8,
            account="ml",
            action=StopAction.REQUEUE_HOLD,
        ),
    )
    assert decided(one).would_be == ()


def test_the_observe_rung_books_the_same_evidence() -> None:
    found = decided(case(rung=Rung.OBSERVE))

    assert found.would_be == (WouldBeStop(KEY, LIFE, NOW_S, EVIDENCE),)
    assert (found.intents, found.pins) == ((), ())


@pytest.mark.parametrize("wished", [False, True])
def test_a_would_be_stop_says_whether_only_its_owners_word_kept_it_one(wished: bool) -> None:
    one = case(rung=Rung.OBSERVE)

    found = decided(replace(one, standing=replace(one.standing, wished=wished)))
    assert [each.wished for each in found.would_be] == [wished]


def test_the_dataset_that_judges_is_in_the_watch_and_in_the_evidence() -> None:
    found = decided(case(dataset="held-out@9f"))

    assert [each.dataset_now for each in found.watches] == ["held-out@9f"]
    assert [each.evidence.dataset for each in found.intents] == ["held-out@9f"]


def test_evidence_has_the_standard_errors_where_any_was_logged() -> None:
    points = evals(*FALL)
    (intent,) = decided(case([points[0]._replace(stderr=0.1), *points[1:]])).intents

    assert intent.evidence.stderrs == (0.1, None, None, None)


def test_the_watch_shows_the_whole_curve() -> None:
    (watch,) = decided(case()).watches

    assert (watch.evals, watch.declines) == (4, 2)
    assert (watch.last_step, watch.last_score, watch.last_life) == (40, 1.0, 1)
    assert (watch.best_step, watch.best_score, watch.best_life) == (20, 3.0, 1)
    assert (watch.rung_now, watch.rule_now, watch.metric_now, watch.mode_now) == (
        Rung.ENFORCE, "k-declines:k=2", "acc", Mode.MAX,
    )  # fmt: skip
    (mirrored,) = decided(case(mode=Mode.MIN)).watches
    assert (mirrored.best_step, mirrored.best_score, mirrored.mode_now) == (10, 1.0, Mode.MIN)


def test_a_job_without_evals_stays_as_it_was() -> None:
    one = case(())

    assert decided(one) == Plan(watches=(one.watch,))


def test_the_counter_of_each_verdict() -> None:
    assert [declines(each) for each in (KEEP_GOING, Declining(1, 3), Stop("fell", 3))] == [0, 1, 3]


def test_a_reason_says_from_where_to_where() -> None:
    watch = replace(case().watch, best_score=2 / 3, best_step=5, last_score=0.25, last_step=9)

    assert reason(Stop("it fell"), watch) == "it fell, from the best 0.666667 at step 5 to 0.25 at step 9"


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.WARN, Rung.ENFORCE])
def test_a_slow_reading_decides_what_a_fast_one_would_have(rung: Rung) -> None:
    """All came at once: the first stop among them counts, and its evidence ends there."""
    late = evals(3.0, 2.0, 1.0, 0.5, arrived_s=NOW_S)

    assert triggers(case(late, rung=rung)) == [30]
    assert triggers(case([each._replace(arrived_s=EARLIER_S) for each in late], rung=rung)) == [40]


def test_of_a_slow_reading_only_a_stop_that_no_later_best_withdraws() -> None:
    """Where nothing would be done, the stop is booked all the same."""
    late = evals(3.0, 2.0, 1.0, 4.0, arrived_s=NOW_S)

    assert triggers(case(late)) == []
    assert triggers(case(late, rung=Rung.OBSERVE)) == [30]


def test_an_eval_of_an_earlier_life_decides_nothing() -> None:
    history = evals(*FALL, life=0)

    assert triggers(case(history)) == []
    assert triggers(case([*history[:-1], history[-1]._replace(life=1)])) == [40]


def test_after_an_earlier_decision_only_a_later_eval_decides_anew() -> None:
    assert triggers(case(), replace(NOTHING, triggered={KEY: 40})) == []
    assert triggers(case(), replace(NOTHING, triggered={KEY: 39})) == [40]
    assert triggers(case(rung=Rung.OBSERVE), replace(NOTHING, triggered={KEY: 40})) == [40], "an intent is no would-be"


def test_nothing_is_decided_against_a_veto_beside_an_open_intent_or_under_the_kill_switch() -> None:
    (intent,) = decided(case()).intents

    assert triggers(replace(case(), wishes=Wishes(keep=True))) == []
    assert triggers(case(), replace(NOTHING, open_intents={KEY: intent})) == []
    assert triggers(case(), replace(NOTHING, killed=True)) == []
    assert triggers(case(rung=Rung.OFF)) == []


def test_a_would_be_stop_is_booked_once_and_no_kill_switch_hinders_it() -> None:
    observed = case(rung=Rung.OBSERVE)

    assert triggers(observed, replace(NOTHING, booked=frozenset([KEY]))) == []
    assert triggers(case(), replace(NOTHING, booked=frozenset([KEY]))) == [40], "it does not keep an intent out"
    assert triggers(observed, replace(NOTHING, killed=True)) == [40]


@pytest.mark.parametrize(
    ("step", "state", "before", "found"),
    [
        (20, PinState.LOST, 30, []),
        (20, PinState.LOST, None, [40]),
        (10, PinState.LOST, 30, [40]),
        (20, PinState.PINNED, 30, [40]),
        (20, PinState.LOGGED, 30, []),
        (20, PinState.LOGGED, None, [40]),
    ],
)
def test_that_the_best_checkpoint_is_lost_is_said_once(
    step: int, state: PinState, before: int | None, found: list[int]
) -> None:
    known = replace(
        NOTHING,
        pins={KEY: (Pin(KEY, step, 3.0, state, 1.0, 1),)},
        triggered={} if before is None else {KEY: before},
    )

    assert triggers(case(), known) == found


def test_a_logged_model_is_not_lost_where_a_stop_may_rest_on_one() -> None:
    logged = Pin(KEY, 20, 3.0, PinState.LOGGED, 1.0, 1)
    known = replace(NOTHING, pins={KEY: (logged,)}, triggered={KEY: 30})

    assert triggers(case(logged_models=True), known) == [40]
    lost = replace(known, pins={KEY: (replace(logged, state=PinState.LOST),)})
    assert triggers(case(logged_models=True), lost) == []


def warned_at(told_s: float | None) -> EarlyWarning:
    return EarlyWarning(1, 200, 4000.0, 30, 1, 2, 20, 3, TERMS.rule, "acc", "max", 60.0, told_s)


def told(told_s: float | None) -> Case:
    one = case()
    return replace(one, watch=replace(one.watch, early=warned_at(told_s)))


@pytest.mark.parametrize(
    ("told_s", "not_before_s"),
    [(4970.0, 5030.0), (4000.0, 5000.0), (5010.0, 5060.0), (None, 5060.0)],
)
def test_the_notice_runs_from_an_early_warning_that_stands(told_s: float | None, not_before_s: float) -> None:
    """Never before the decision, nor from a telling in the future."""
    (intent,) = decided(told(told_s)).intents

    assert (intent.told_s, intent.not_before_s) == (told_s, not_before_s)


def test_an_early_warning_serves_one_intent() -> None:
    (again,) = decided(told(4970.0), replace(NOTHING, triggered={KEY: 30})).intents

    assert (again.told_s, again.not_before_s) == (None, 5060.0)


NEAR = evals(1.0, 3.0, 2.0)


def test_one_step_before_a_stop_the_owner_is_told_and_the_watch_says_so() -> None:
    found = decided(case(NEAR))

    assert [(each.early.step, each.early.at_s) for each in found.warned if each.early] == [(30, NOW_S)]
    assert found.warned == found.watches
    assert found.intents == ()
    assert decided(case(NEAR[:2])).warned == ()


def test_no_early_warning_comes_where_no_stop_may_or_after_one() -> None:
    (intent,) = decided(case()).intents

    assert decided(replace(case(NEAR), wishes=Wishes(keep=True))).warned == ()
    assert decided(case(NEAR), replace(NOTHING, killed=True)).warned == ()
    assert decided(case(NEAR), replace(NOTHING, open_intents={KEY: intent})).warned == ()
    assert decided(case(NEAR), replace(NOTHING, triggered={KEY: 5})).warned == ()
    assert decided(case(NEAR, rung=Rung.OBSERVE)).warned == ()
    assert decided(case()).warned == ()


def wanted(one: Case, *held: Pin) -> tuple[Pin, ...]:
    return decided(one, replace(NOTHING, pins={KEY: held})).pins


@pytest.mark.parametrize("rung", [Rung.WARN, Rung.ENFORCE])
def test_the_best_checkpoint_is_wanted_from_the_warn_rung_on(rung: Rung) -> None:
    """A step of this life was saved after it started, at 250 s."""
    want = Pin(KEY, 20, 3.0, PinState.WANTED, NOW_S, 1, 250.0)

    assert wanted(case(NEAR, rung=rung)) == (want,)
    assert wanted(case(NEAR, rung=rung), replace(want, step=10)) == (want,)
    assert wanted(case(NEAR, rung=rung), want) == ()
    assert wanted(case(NEAR, rung=Rung.OBSERVE)) == ()


def test_a_step_that_was_evaluated_anew_makes_its_pin_outdated() -> None:
    """By this life again: saved after the first was wanted. By this life for the first time: after its start."""
    outdated = Pin(KEY, 20, 3.0, PinState.OUTDATED, NOW_S, 1, 250.0)

    assert wanted(case(NEAR), Pin(KEY, 20, 2.5, PinState.PINNED, 4000.0, 1)) == (replace(outdated, since_s=4000.0),)
    assert wanted(case(NEAR), Pin(KEY, 20, 2.5, PinState.PINNED, 100.0, 1)) == (outdated,)
    assert wanted(case(NEAR), Pin(KEY, 20, 3.0, PinState.WANTED, 4000.0, 0)) == (outdated,)


def test_what_is_pinned_of_a_step_is_remembered_until_the_other_checkpoint_is_there() -> None:
    pinned = Pin(KEY, 20, 2.5, PinState.PINNED, 100.0, 1, 0.0, 0, "/there/step-20", 3, 300, "m")

    (pin,) = wanted(case(NEAR), pinned)
    assert (pin.state, pin.path, pin.files, pin.size, pin.manifest) == (
        PinState.OUTDATED,
        "/there/step-20",
        3,
        300,
        "m",
    )


def test_the_same_score_of_a_later_life_is_no_other_best_where_it_is_pinned() -> None:
    assert wanted(case(NEAR), Pin(KEY, 20, 3.0, PinState.PINNED, 4000.0, 0)) == ()


def test_a_checkpoint_of_history_may_be_as_old_as_it_is() -> None:
    history = evals(*FALL[:3], life=0)

    assert wanted(case(history)) == (Pin(KEY, 20, 3.0, PinState.WANTED, NOW_S, 0, 0.0),)


def test_where_slurm_does_not_say_when_the_life_started_any_age_will_do() -> None:
    one = case(NEAR)
    nameless = replace(one, watch=replace(one.watch, started_s=None))

    assert [each.since_s for each in wanted(nameless)] == [0.0]


LUCKY = evals(0.1, 0.9, 0.2, 0.8, 0.8, 0.8, 0.1, 0.1)
WEIGHED = case(LUCKY, rule="drop-test-safe:sigma=0.01")


def chosen(one: Case, *held: Pin) -> list[int | None]:
    return [each.evidence.chosen_step for each in decided(one, replace(NOTHING, pins={KEY: held})).intents]


SAFE = Pin(KEY, 50, 0.8, PinState.PINNED, 1.0, 1)


def test_a_pinned_checkpoint_of_a_better_stretch_is_chosen_over_the_maximum() -> None:
    """The maximum .9 stands alone (.4 with its neighbours), step 50 among its like (.8)."""
    assert chosen(WEIGHED) == [20]
    assert chosen(WEIGHED, SAFE) == [50]
    assert chosen(WEIGHED, replace(SAFE, step=30, score=0.2)) == [30], (
        "(.9 + .2 + .8) / 3 is better than (.1 + .9 + .2) / 3"
    )
    assert chosen(WEIGHED, replace(SAFE, step=70, score=0.1)) == [20]


def test_a_pin_that_is_not_safe_or_of_another_life_is_not_chosen() -> None:
    assert chosen(WEIGHED, replace(SAFE, state=PinState.WANTED)) == [20]
    assert chosen(WEIGHED, replace(SAFE, restarts=0)) == [20]
    assert chosen(WEIGHED, replace(SAFE, step=55)) == [20]
    assert chosen(WEIGHED, replace(SAFE, score=0.7)) == [20], "of an earlier training in the same life"


def test_a_logged_model_is_chosen_where_a_stop_may_rest_on_one() -> None:
    logged = replace(SAFE, state=PinState.LOGGED)

    assert chosen(WEIGHED, logged) == [20]
    assert chosen(
        case(LUCKY, rule="drop-test-safe:sigma=0.01", logged_models=True), replace(SAFE, state=PinState.WANTED)
    ) == [20]
    assert chosen(case(LUCKY, rule="drop-test-safe:sigma=0.01", logged_models=True), logged) == [50]


def test_where_less_is_better_the_choice_is_mirrored() -> None:
    mirrored = case(
        [each._replace(score=-each.score) for each in LUCKY], rule="drop-test-safe:sigma=0.01", mode=Mode.MIN
    )

    assert chosen(mirrored, replace(SAFE, score=-0.8)) == [50]


def test_a_rule_that_counts_declines_keeps_the_maximum() -> None:
    assert chosen(case(), Pin(KEY, 10, 1.0, PinState.PINNED, 1.0, 1)) == [None]


def test_evidence_of_a_watch_without_a_run_names_none() -> None:
    one = case()
    (intent,) = decided(replace(one, watch=replace(one.watch, run_id=None, two_way=False))).intents

    assert (intent.evidence.run_id, intent.evidence.two_way) == ("", False)


def test_a_rule_that_asks_for_an_estimate_finds_none_and_lets_the_job_go_on() -> None:
    assert verdicts(evals(*FALL), replace(TERMS, rule="elapsed-fraction")) == (KEEP_GOING,) * 4


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.ENFORCE])
def test_a_decision_takes_nothing_from_what_else_a_reading_brings(rung: Rung) -> None:
    """The watch shows the whole curve, beyond the eval that decided, and the best checkpoint is wanted as ever."""
    found = decided(case(evals(3.0, 2.0, 1.0, 0.5, arrived_s=NOW_S), rung=rung))

    assert [each.last_step for each in found.watches] == [40]
    assert [each.step for each in found.pins] == ([10] if rung is Rung.ENFORCE else [])


def test_a_job_without_any_pin_keeps_the_maximum() -> None:
    """As on the observe rung, where nothing is ever pinned."""
    for rung in (Rung.OBSERVE, Rung.ENFORCE):
        found = decided(case(LUCKY, rule="drop-test-safe:sigma=0.01", rung=rung))

        assert [each.evidence.chosen_step for each in (*found.intents, *found.would_be)] == [20]


OWN = OwnerLog("log.json", "d" * 64, {"acc": tuple((each.step, each.score) for each in evals(*FALL))})
BORNE_OUT = f"steps 20 to 40 and the verdict as in the owner's log.json, SHA-256 {'d' * 64}"


def held_back(log: OwnerLog | NoLog, *scores: float, arrived_s: float = EARLIER_S) -> Case:
    """Return a job that would be stopped but for the ceiling of an open server, with its owner's log."""
    return replace(case(evals(*(scores or FALL), arrived_s=arrived_s), rung=Rung.WARN), log=log)


def test_a_stop_that_the_owners_log_bears_out_is_decided_on_the_enforce_rung_and_says_so() -> None:
    found = decided(held_back(OWN))
    (intent,) = found.intents

    assert intent.evidence == replace(EVIDENCE, corroborated=BORNE_OUT)
    assert (intent.rung, found.doubts) == (Rung.ENFORCE, ())
    assert ([each.step for each in found.pins], [each.evals for each in found.watches]) == ([20], [4])


def test_it_is_decided_at_the_last_eval_that_the_log_reaches() -> None:
    """Also where the readings that brought it are long past."""
    (intent,) = decided(held_back(OWN, *FALL, 0.5)).intents

    assert (intent.evidence, intent.rung) == (replace(EVIDENCE, corroborated=BORNE_OUT), Rung.ENFORCE)


def test_a_stop_that_the_log_does_not_bear_out_stays_below_the_ceiling_and_the_doubt_is_told() -> None:
    found = decided(held_back(NoLog("no log was found")))
    (intent,) = found.intents

    assert (intent.rung, intent.evidence) == (Rung.WARN, EVIDENCE)
    assert found.doubts == ((KEY, "no log was found"),)
    assert ([each.step for each in found.pins], [each.evals for each in found.watches]) == ([20], [4])


def test_a_point_of_this_life_that_is_not_in_the_log_is_a_doubt() -> None:
    """Also where it is on no curve, as another one has its step."""
    found = decided(replace(held_back(OWN), points=(Point("r", 40, 1.5, 0),)))

    assert found.doubts == ((KEY, "the owner's log.json does not have the score of step 40"),)


def test_a_log_that_may_still_come_is_waited_for_but_not_for_ever() -> None:
    soon = NoLog("no log was found yet", later=True)
    waits = decided(held_back(soon))

    assert (waits.intents, waits.doubts) == ((), ())
    assert ([each.step for each in waits.pins], [each.evals for each in waits.watches]) == ([20], [4])
    late = decided(held_back(soon, arrived_s=NOW_S - 601.0))
    assert ([each.rung for each in late.intents], late.doubts) == ([Rung.WARN], ((KEY, "no log was found yet"),))


POINTS = tuple(Point("r", each.step, each.score, 0, 1, each.arrived_s) for each in evals(*FALL))


def by_word(log: OwnerLog | NoLog, named: Named = Named.COMMENT, **terms: object) -> Case:
    """Return a job that nothing but its owner's word lets be stopped, with its owner's log."""
    found = case(**terms)
    return replace(found, standing=replace(found.standing, by_word=True, named=named), points=POINTS, log=log)


@pytest.mark.parametrize("log", [OWN, NoLog("none"), NoLog("may come", later=True), OwnerLog("l", "d", {"loss": ()})])
def test_a_stop_by_the_owners_word_is_decided_where_no_log_speaks_against_it(log: OwnerLog | NoLog) -> None:
    found = decided(by_word(log))

    assert [(each.rung, each.evidence) for each in found.intents] == [(Rung.ENFORCE, EVIDENCE)]
    assert [each.rung_now for each in found.watches] == [Rung.ENFORCE]


@pytest.mark.parametrize(("log", "named", "rung"), [
    (OWN, Named.RUN, Rung.ENFORCE), (NoLog("none"), Named.SITE, Rung.ENFORCE), (NoLog("none"), Named.RUN, Rung.WARN),
    (OwnerLog("l", "d", {"loss": ()}), Named.SITE, Rung.WARN), (OwnerLog("l", "d", {"loss": ()}), Named.RUN, Rung.WARN),
])  # fmt: skip
def test_a_metric_that_the_owner_did_not_name_must_be_in_his_log_or_without_one_be_the_sites(
    log: OwnerLog | NoLog, named: Named, rung: Rung
) -> None:
    """Whoever logs one point of it first could have chosen it."""
    assert [each.rung for each in decided(by_word(log, named)).intents] == [rung]


def test_where_the_owners_log_speaks_against_it_the_job_is_only_warned_of_by_the_same_evidence() -> None:
    other = OwnerLog("log.json", "d" * 64, {"acc": ((10, 1.0), (20, 3.0), (30, 2.5), (40, 2.75))})
    found = decided(by_word(other))
    against = f"the owner's log.json has 2.5 at step 30, not 2; SHA-256 {'d' * 64}"

    assert [(each.rung, each.evidence) for each in found.intents] == [
        (Rung.WARN, replace(EVIDENCE, contradicted=against))
    ]
    assert ([each.rung_now for each in found.watches], found.doubts) == ([Rung.WARN], ())
    assert [each.step for each in found.pins] == [20]


@pytest.mark.parametrize(
    "one",
    [
        case(),
        case(evals(3.0, 2.0, 1.0, 0.5, arrived_s=NOW_S)),
        case(NEAR, rung=Rung.OBSERVE),
        held_back(OWN),
        held_back(NoLog("none")),
        by_word(OWN),
    ],
)
def test_verdicts_that_were_folded_before_decide_what_they_would_have_here(one: Case) -> None:
    since = first_asked(one.evals, NOW_S)
    folded = verdicts(one.evals, one.standing.terms, since)

    assert decided(replace(one, verdicts=folded)) == decided(one)


def test_what_the_log_contradicts_after_the_eval_that_decides_is_no_matter() -> None:
    """Of several evals in one reading the first that stops decides."""
    more = evals(*FALL, 0.5, arrived_s=NOW_S)
    other = OwnerLog("l", "d", {"acc": (*((each.step, each.score) for each in evals(*FALL)), (50, 0.75))})
    points = tuple(Point("r", each.step, each.score, 0, 1, each.arrived_s) for each in more)
    found = decided(replace(by_word(other), evals=more, points=points))

    assert [(each.rung, each.evidence.trigger_step) for each in found.intents] == [(Rung.ENFORCE, 40)]


def test_an_early_warning_is_no_notice_of_what_the_owners_log_contradicts() -> None:
    other = OwnerLog("log.json", "d" * 64, {"acc": ((10, 1.0), (20, 3.0), (30, 2.5), (40, 2.75))})
    early = EarlyWarning(1, 200, 4950.0, 30, 1, 2, 20, Rung.ENFORCE, "k-declines:k=2", "acc", "max", told_s=4950.0)
    told = [replace(each, watch=replace(each.watch, early=early)) for each in (by_word(OWN), by_word(other))]

    assert [intent.told_s for each in told for intent in decided(each).intents] == [4950.0, None]
