"""An open server and an owner who wrote enforce: his own log keeps the job from a stop that it contradicts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from evalstopd.core.caps import UNLIMITED, Caps
from evalstopd.core.corroborate import OwnerLog
from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from evalstopd.core.rules import ServerClass
from evalstopd.errors import Unavailable
from evalstopd.ports import PinPlace, Span
from evalstopd.report.audit.gather import audit_report
from evalstopd.report.audit.page import as_text
from evalstopd.report.rows import explain, status_rows
from evalstopd.report.scorecard.book import read_scorecard
from evalstopd.report.scorecard.limits import Limits
from evalstopd.store.memory import MemoryStore
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, said

OPEN = replace(RULES, server=ServerClass.OPEN)
OUTPUT = "/home/alice/out-r1"
RISE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
FORGED = ((50, 0.1), (60, 0.05))
WHY = f"the owner's trainer_state.json has 0.5 at step 50, not 0.1; SHA-256 {'a' * 64}"
WAVES = (0.1, 0.8, 0.79, 0.795, 0.79, 0.795, 0.79)


def log(scores: Sequence[float]) -> OwnerLog:
    return OwnerLog("trainer_state.json", "a" * 64, {"score": tuple((10 * n, s) for n, s in enumerate(scores, 1))})


def train(world: World, scores: Sequence[float], *, since: int = 1, job: str = "", behind: int = 0) -> str:
    """Play a training's evals from one on, of a job whose owner wrote enforce, with the log that it writes."""
    job = job or world.train("r1", comment="evalstop=enforce")
    for number, score in list(enumerate(scores, 1))[since - 1 :]:
        world.evaluate(job, "r1", 10 * number, score)
        world.keeper.logs[OUTPUT] = log(scores[: number - behind])
        world.tick()
    return job


def forge(world: World, points: Sequence[tuple[int, float]] = FORGED) -> None:
    """Log as a stranger does: into the run, a moment later, and to no file."""
    for step, score in points:
        world.tracker.log("r1", step, score, timestamp_ms=int(world.clock.time_s * 1000) + 500)
        world.tick()


def store_of(world: World) -> MemoryStore:
    assert isinstance(world.store, MemoryStore)
    return world.store


def test_falls_that_the_owners_log_does_not_have_stop_nothing_and_the_reason_is_shown_everywhere() -> None:
    world = World(OPEN)
    job = train(world, RISE[:6])
    forge(world)
    store = store_of(world)
    (row,) = status_rows(store, store, 10)
    found = explain(store, store, job)
    report = audit_report(store, Span(0, 1e12), "test")
    assert found is not None

    assert world.cluster.cancelled == []
    assert said(world, "contradicted") == [f"only warned of, although its owner asked for enforce: {WHY}"]
    assert [each.text for each in world.notifier.told if WHY in each.text] == [world.notifier.told[-1].text]
    assert (report.decisions[0].what, report.decisions[0].basis.contradicted) == ("warning", WHY)
    assert f"  disagrees   {WHY}"[:80] in as_text(report)
    assert [each.kind for each in found.events if WHY in each.text] == ["planned", "warning"]
    assert (row.rung, row.state) == ("warn", "warned")
    assert row.why.startswith(f"only warned of: {WHY}; ")


@pytest.mark.parametrize(("notice_s", "asked"), [(10.0, 2), (0.0, 1)])
def test_a_fall_that_the_owners_log_has_too_is_stopped(notice_s: float, asked: int) -> None:
    """The log is asked for when the stop is decided, and right before it is done where that is another pass."""
    world = World(replace(OPEN, notice_s=notice_s))
    job = train(world, RISE_AND_FALL)
    for _ in range(2):
        world.tick(10.0)

    assert world.cluster.cancelled == [(job, 0)]
    assert intents(world) == [(job, State.CONFIRMED)]
    assert len(world.keeper.asked) == asked


@pytest.mark.parametrize("scores", [None, (), RISE_AND_FALL[:3], (9.0, 8.0, 7.0)])
def test_without_a_log_that_covers_the_falls_nothing_is_another(scores: Sequence[float] | None) -> None:
    """None there, none of the metric, one that lags behind, one of another training."""
    world = World(OPEN)
    job = world.train("r1", comment="evalstop=enforce")
    if scores is not None:
        world.keeper.logs[OUTPUT] = log(scores)
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]
    assert said(world, "contradicted") == []


def test_a_log_that_cannot_be_read_holds_no_stop() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    world.keeper = Deaf()
    job = train(world, RISE_AND_FALL)
    world.tick(100.0)
    assert world.cluster.cancelled == [], "it may answer yet"
    for _ in range(8):
        world.tick(100.0)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_keeper_that_does_not_answer_is_asked_once_for_an_owner_before_the_acts_of_a_pass() -> None:
    world = World(replace(OPEN, notice_s=100.0, caps=UNLIMITED))
    world.keeper = deaf = Deaf()
    for run in ("r1", "r2"):
        world.play(world.train(run, comment="evalstop=enforce"), run, RISE_AND_FALL)
    decided = deaf.heard
    world.tick(200.0)

    assert decided == 2
    assert deaf.heard == decided + 1


def test_one_that_is_late_is_waited_for_and_heard() -> None:
    world = World(replace(OPEN, notice_s=10.0))
    world.keeper = deaf = Deaf()
    train(world, RISE[:6])
    forge(world)
    world.tick(60.0)
    deaf.deaf = False
    world.tick(60.0)

    assert world.cluster.cancelled == []
    assert ("abandoned", WHY) in events(world)


class Deaf(FakeKeeper):
    """A keeper that tells of no log while it is deaf, and does all else."""

    deaf = True
    heard = 0

    def log(self, place: PinPlace) -> OwnerLog:
        """Have no answer."""
        self.heard += 1
        if self.deaf:
            raise Unavailable("the keeper does not answer")
        return super().log(place)


def test_a_log_that_only_catches_up_during_the_notice_is_heard_before_the_act() -> None:
    """The trainer saves more seldom than it evaluates; what it saves before the stop is due counts."""
    world = World(replace(OPEN, notice_s=100.0))
    job = train(world, RISE[:6], behind=2)
    forge(world)
    assert intents(world) == [(job, State.WARNED)]
    world.keeper.logs[OUTPUT] = log(RISE[:6])
    for _ in range(5):
        world.tick()
    assert len(world.keeper.asked) == 1, "nothing is near while the notice runs"
    world.tick(100.0)

    assert world.cluster.cancelled == []
    assert ("abandoned", WHY) in events(world)
    assert len(world.keeper.asked) == 2


def test_after_that_the_next_fall_is_only_warned_of() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    job = train(world, RISE[:6], behind=2)
    forge(world)
    world.keeper.logs[OUTPUT] = log(RISE[:6])
    world.tick(100.0)
    forge(world, [(61, 0.02)])
    world.tick(200.0)

    assert world.cluster.cancelled == []
    assert sorted(intents(world)) == [(job, State.ABANDONED), (job, State.WARNED)]
    assert len(said(world, "contradicted")) == 1


def test_steps_far_ahead_are_heard_against_once_the_training_has_gone_on_without_them() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    job = train(world, WAVES[:4])
    forge(world, [(10**16, 0.1), (10**16 + 1, 0.05)])
    assert intents(world) == [(job, State.WARNED)]
    train(world, WAVES[:5], since=5, job=job)
    world.tick(100.0)

    assert world.cluster.cancelled == []
    assert [text for kind, text in events(world) if kind == "abandoned"] == [
        f"the owner's trainer_state.json has no eval at step {10**16}, not 0.1; SHA-256 {'a' * 64}"
    ]
    assert all(0 <= each.step < 10**15 for each in world.keeper.asked), "more no keeper takes"


def test_steps_far_ahead_end_with_a_training_that_goes_on_below_them() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    job = train(world, WAVES[:4])
    forge(world, [(10**16, 0.1), (10**16 + 1, 0.05)])
    train(world, WAVES, since=5, job=job)
    world.tick(100.0)

    assert world.cluster.cancelled == []
    (why,) = [text for kind, text in events(world) if kind == "abandoned"]
    assert why.startswith("the training began again at step 50: ")


def test_falls_that_a_stranger_takes_back_after_the_decision_are_heard_against_all_the_same() -> None:
    """The stop rests on what was decided on, not on what the run shows since."""
    world = World(replace(OPEN, notice_s=100.0))
    train(world, WAVES[:6], behind=2)
    forge(world)
    forge(world, [(60, WAVES[5]), (50, WAVES[4])])
    world.keeper.logs[OUTPUT] = log(WAVES[:6])
    world.tick(100.0)

    assert world.cluster.cancelled == []
    assert ("abandoned", WHY.replace("0.5", "0.79")) in events(world)


def test_an_owner_who_logs_anew_what_was_forged_is_stopped_by_a_fall_of_his_own() -> None:
    world = World(OPEN)
    job = train(world, (0.1, 0.8, 0.7, 0.75))
    forge(world, [(40, 0.6)])
    assert intents(world) == [(job, State.WARNED)]
    forge(world, [(40, 0.75)])
    assert intents(world) == [(job, State.ABANDONED)]
    train(world, (0.1, 0.8, 0.7, 0.75, 0.6, 0.5), since=5, job=job)

    assert world.cluster.cancelled == [(job, 0)]


def test_after_the_owners_signal_the_log_is_not_asked_for_again() -> None:
    world = World(replace(OPEN, notice_s=2.0))
    job = world.train("r1", comment="evalstop=enforce evalstop_signal=USR1@5")
    train(world, RISE_AND_FALL, job=job)
    world.tick(10.0)

    assert world.cluster.cancelled == [(job, 0)]
    assert len(world.keeper.asked) == 2


def test_the_stop_is_possible_again_once_the_log_bears_it_out_and_the_next_eval_decides() -> None:
    world = World(OPEN)
    job = world.train("r1", comment="evalstop=enforce")
    world.keeper.logs[OUTPUT] = log((0.1, 0.4, 0.8, 0.7, 0.65))
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    world.keeper.logs[OUTPUT] = log(RISE_AND_FALL[:5])
    world.tick()
    assert ("abandoned", "the owner's log bears the evals out now: its next eval decides anew") in events(world)
    assert world.cluster.cancelled == []
    train(world, RISE_AND_FALL, since=6, job=job)

    assert world.cluster.cancelled == [(job, 0)]
    assert sorted(intents(world)) == [(job, State.ABANDONED), (job, State.CONFIRMED)]


def test_a_log_that_has_gone_since_it_spoke_against_a_stop_lets_nothing_be_stopped() -> None:
    world = World(OPEN)
    job = train(world, RISE[:6])
    forge(world)
    del world.keeper.logs[OUTPUT]
    for _ in range(5):
        world.tick()

    assert intents(world) == [(job, State.WARNED)]


def test_an_owner_who_writes_warn_meanwhile_is_not_lifted_and_no_log_is_asked_for() -> None:
    world = World(OPEN)
    job = train(world, RISE[:6])
    forge(world)
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=warn")
    asked = len(world.keeper.asked)
    for _ in range(5):
        world.tick()

    assert len(world.keeper.asked) == asked
    assert intents(world) == [(job, State.WARNED)]


def test_a_log_that_goes_on_contradicting_is_asked_for_ever_more_rarely() -> None:
    world = World(replace(OPEN, tick_s=30.0))
    train(world, RISE[:6])
    forge(world)
    asked = []
    for _ in range(600):
        before = len(world.keeper.asked)
        world.tick(30.0)
        asked.append(len(world.keeper.asked) - before)

    assert max(asked) == 1
    assert asked[:9] == [1] * 9
    assert sum(asked[100:]) == pytest.approx(500 / 20, abs=15)


@pytest.mark.parametrize(
    "rules", [replace(OPEN, open_server_accepted="a reason"), replace(OPEN, server=ServerClass.AUTHENTICATED)]
)
def test_where_the_site_trusts_the_points_no_log_is_asked_for(rules: object) -> None:
    world = World(rules)  # type: ignore[arg-type]
    job = world.train("r1", comment="evalstop=enforce")
    world.keeper.logs[OUTPUT] = log(RISE)
    world.play(job, "r1", RISE_AND_FALL)

    assert (world.cluster.cancelled, world.keeper.asked) == ([(job, 0)], [])


def test_a_stop_that_caps_hold_asks_for_no_log_before_its_turn() -> None:
    world = World(replace(OPEN, caps=Caps(stops=1)))
    train(world, RISE_AND_FALL)
    held = world.train("r2", comment="evalstop=enforce")
    world.play(held, "r2", RISE_AND_FALL)
    for _ in range(20):
        world.tick()

    assert (held, State.PROMOTED) in intents(world)
    assert [each.output_dir for each in world.keeper.asked].count("/home/alice/out-r2") == 1


def test_a_contradicted_job_tells_the_scorecard_nothing() -> None:
    world = World(OPEN)
    train(world, RISE[:6])
    forge(world)
    store = store_of(world)

    assert read_scorecard(store, store, OPEN.rule, Limits()).apart == {"owner's log contradicts": 1}


def test_an_early_warning_is_no_notice_of_what_is_only_warned_of() -> None:
    """The owner hears that somebody writes into the run."""
    world = World(replace(OPEN, notice_s=100.0))
    train(world, (0.1, 0.8, 0.7, 0.79))
    forge(world, [(40, 0.6)])

    assert [each.kind for each in world.notifier.told] == ["early-warning", "warning"]
    against = "nothing will be done, for the owner's trainer_state.json has 0.79 at step 40, not 0.6"
    assert against in world.notifier.told[-1].text
    assert store_of(world).recent(1)[0].rung_now is Rung.WARN
