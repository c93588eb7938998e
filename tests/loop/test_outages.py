"""Ports that fail, flap and lie: nothing is stopped wrongly, nothing twice, and what was held up goes on by itself."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstopd.core.binding import Trust
from evalstopd.core.intent import State
from evalstopd.core.model import Phase
from evalstopd.errors import Unavailable
from evalstopd.loop import Tracker
from evalstopd.ports import Ports
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents

LONG_FALL = (*RISE_AND_FALL, 0.3, 0.2, 0.1)
PORTS = ("cluster", "metrics", "runs", "keeper", "store", "gate")
FINE, BEFORE, AFTER = "fine", "fails before", "fails after"


class Flaky:
    """A port whose calls fail as a list says, before or after they took effect; fine once the list is through."""

    def __init__(self, port: object, fates: Iterator[str]) -> None:
        self._port, self._fates = port, fates

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        method = getattr(self._port, name)
        return lambda *args: self._call(method, args)

    def _call(self, method, args):  # type: ignore[no-untyped-def]
        fate = next(self._fates, FINE)
        if fate == BEFORE:
            raise Unavailable("no answer")
        result = method(*args)
        if fate == AFTER:
            raise Unavailable("the answer was lost")
        return result


def flaky(world: World, what: str, fates: Iterator[str]) -> Ports:
    ports = world.ports()
    names = PORTS if what == "all" else (what,)
    return replace(ports, **{name: Flaky(getattr(ports, name), fates) for name in names})


def story(what: str, fates: list[str], scores: tuple[float, ...] = LONG_FALL) -> tuple[World, str]:
    """Run a job while ports flap, then let everything be well for a while."""
    world = World(replace(RULES, notice_s=0.5), gpus=8)
    job = world.train("r1")
    world.cluster.submit(1002, 8)
    ports = flaky(world, what, iter(fates))
    for number, score in enumerate(scores, 1):
        world.evaluate(job, "r1", number * 10, score)
        for _ in range(3):
            world.tick(0.4, ports)
    for _ in range(6):
        world.tick(0.4)
    return world, job


flapping = st.lists(st.sampled_from([FINE, FINE, BEFORE, AFTER]), max_size=120)


@given(st.sampled_from([*PORTS, "all"]), flapping)
def test_however_the_ports_flap_a_stop_is_whole_and_single(what: str, fates: list[str]) -> None:
    world, job = story(what, fates)
    published = {text for kind, text in events(world) if kind == "promoted"}
    assert len(world.cluster.cancelled) <= 1
    if world.cluster.cancelled:
        assert world.keeper.best == {"c-1-1000": 30}
        assert published
        assert next(state for _, state in intents(world)) is State.CONFIRMED
        assert world.tracker.runs["r1"].status == "KILLED"
        assert world.cluster.jobs["2"].phase is Phase.RUNNING
    else:
        lost = "no safe checkpoint: no such checkpoint folder"
        assert lost in {text for kind, text in events(world) if kind == "abandoned"}
        assert world.cluster.jobs[job].phase is Phase.RUNNING
    subjects = [message.subject for message in world.notifier.told]
    assert len(subjects) == len(set(subjects)) or not world.cluster.cancelled


@given(st.sampled_from([*PORTS, "all"]), flapping)
@example("store", [BEFORE, *[FINE] * 7, *[BEFORE] * 11])
def test_however_the_ports_flap_a_healthy_job_is_left_alone(what: str, fates: list[str]) -> None:
    world, job = story(what, fates, HEALTHY)
    assert intents(world) == []
    assert world.cluster.jobs[job].phase is Phase.RUNNING
    assert stored(world) == len(HEALTHY)


def stored(world: World) -> int:
    assert isinstance(world.store, MemoryStore)
    (watch,) = world.store.recent(5)
    return len(world.store.points([watch.key])[watch.key])


@pytest.mark.parametrize("what", PORTS)
def test_after_an_outage_the_very_next_tick_is_a_good_one(what: str) -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    down = flaky(world, what, iter([BEFORE] * 1000))
    for step, score in ((40, RISE_AND_FALL[3]), (50, RISE_AND_FALL[4])):
        world.evaluate(job, "r1", step, score)
        assert world.tick(ports=down).troubles or (what, step) in (("runs", 40), ("keeper", 40))
    assert bool(world.cluster.cancelled) == (what == "runs")
    report = world.tick()
    assert report.troubles == ()
    assert world.cluster.cancelled == [(job, 0)]
    world.tick()
    assert intents(world) == [(job, State.CONFIRMED)]
    assert world.tracker.runs["r1"].status == "KILLED"


LIES = {
    "nan": {"value": float("nan")},
    "infinite": {"value": float("inf")},
    "minus infinite": {"value": float("-inf")},
    "mlflow's infinity": {"value": 1.7976931348623157e308},
    "mlflow's minus infinity": {"value": -1.7976931348623157e308},
    "a step below zero": {"step": -7},
    "a step beyond all": {"step": 2**62},
    "a time to come": {"timestamp_ms": 10**18},
    "a time before time": {"timestamp_ms": -(10**18)},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_among_the_points_of_a_healthy_run_stops_nothing(lie: str) -> None:
    """One false value is one eval at most, and never a reason by itself."""
    world = World()
    job = world.train("r1")
    for number, score in enumerate(HEALTHY, 1):
        world.evaluate(job, "r1", number * 10, score)
        world.tick()
        if number == 4:
            tell(world, lie, number * 10 + 5, score)
    assert world.cluster.cancelled == []


@pytest.mark.parametrize("lie", ["nan", "infinite", "minus infinite", "mlflow's infinity", "mlflow's minus infinity"])
def test_no_number_at_all_neither_counts_nor_resets(lie: str) -> None:
    world = World()
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(job, "r1", number * 10, score)
        tell(world, lie, number * 10 + 5, score)
        world.tick()
    assert world.cluster.cancelled == [(job, 0)]
    (trigger,) = triggers(world)
    assert trigger == 50


@pytest.mark.parametrize("skew_h", [-1, 1, 1000])
def test_a_trainers_clock_that_is_wrong_changes_no_stop(skew_h: int) -> None:
    world = World()
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.clock.time_s += 3600.0 * skew_h
        world.evaluate(job, "r1", number * 10, score)
        world.clock.time_s -= 3600.0 * skew_h
        # A checkpoint bears the file server's time, not the trainer's.
        world.keeper.saved_s = dict.fromkeys(world.keeper.saved_s, world.clock.time_s)
        world.tick()
    assert world.cluster.cancelled == [(job, 0)]
    assert triggers(world) == [50]


def tell(world: World, lie: str, step: int, score: float) -> None:
    said = {"step": step, "value": score, "timestamp_ms": int(world.clock.time_s * 1000)} | LIES[lie]
    world.tracker.log("r1", said["step"], said["value"], timestamp_ms=said["timestamp_ms"])


def triggers(world: World) -> list[int]:
    assert isinstance(world.store, MemoryStore)
    keys = [watch.key for watch in world.store.recent(5)]
    return [intent.evidence.trigger_step for intent in world.store.intents_of(keys)]


def test_a_pass_says_whether_it_had_anything_of_the_tracker() -> None:
    """Nobody is judged without it, which `evalstopd tick` tells by its exit code; the pass is good all the same."""
    world = World()
    assert world.tick().tracker is Tracker.NOT_ASKED
    job = world.train("r1")
    world.evaluate(job, "r1", 10, 0.5)
    assert world.tick().tracker is Tracker.READ
    world.tracker.down = True
    report = world.tick()
    assert (report.good, report.tracker) == (True, Tracker.FAILED)
    assert "MLflow does not answer" in report.summary
    world.tracker.down = False
    assert world.tick().tracker is Tracker.READ


def test_one_run_that_can_be_read_is_something_and_a_refusal_is_an_answer() -> None:
    world = World()
    world.train("r1")
    world.train("r2")
    world.tracker.runs["r1"].broken = True
    assert world.tick().tracker is Tracker.READ
    del world.tracker.runs["r2"]
    assert world.tick().tracker is Tracker.READ
    world.tracker.runs["r1"].broken = False


def test_a_tracker_whose_door_cannot_be_looked_at_is_not_read() -> None:
    world = World()
    world.train("r1")
    world.gate.down = True
    assert world.tick().tracker is Tracker.FAILED


def test_a_tracker_that_cannot_be_searched_is_not_read_unless_another_question_is_answered() -> None:
    """Of a job with a seal, runs are looked for before any is read."""
    world = World(replace(RULES, trust=Trust(tags=True)))
    world.cluster.submit(1001, 8)
    world.tracker.down = True
    assert world.tick().tracker is Tracker.FAILED
    world.tracker.down = False
    assert world.tick().tracker is Tracker.READ


def test_the_last_reading_of_a_job_that_ended_counts_too() -> None:
    world = World()
    job = world.train("r1")
    world.tick()
    world.cluster.finish(job)
    world.tracker.down = True
    reports = [world.tick().tracker for _ in range(2)]
    assert Tracker.FAILED in reports
