"""A pass that takes long acts on what its runs show at the act, not on what they showed when it began."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.ports import RunQuery, RunReading
from tests.fakes.overlaid import Overlaid
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import intents


def falling(tick_s: float = 30.0) -> tuple[World, str]:
    """Return a world whose next pass decides on a stop, and does it."""
    world = World(replace(RULES, tick_s=tick_s))
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(job, "r1", number * 10, score)
        if number < 5:
            world.tick(tick_s)
    return world, job


def slow_pass(world: World, took_s: float, *, meanwhile: Sequence[float] = (), down: bool = False) -> tuple[str, int]:
    """Make a pass whose promotion takes so long, with what is logged meanwhile; return how often is read after it."""
    before: list[int] = []

    def publish(place: object) -> object:
        before.append(len(world.tracker.reads))
        world.clock.time_s += took_s
        for number, score in enumerate(meanwhile, 6):
            world.evaluate("1", "r1", number * 10, score)
        return world.keeper.publish(place)  # type: ignore[arg-type]

    def read(queries: Sequence[RunQuery]) -> dict[RunQuery, RunReading | EvalstopError]:
        if down and before:
            return dict.fromkeys(queries, Unavailable("no answer"))
        return dict(world.tracker.read(queries))

    ports = world.ports()
    keeper, metrics = Overlaid(world.keeper, publish=publish), Overlaid(world.tracker, read=read)
    report = world.tick(30.0, replace(ports, keeper=keeper, metrics=metrics))
    return report.summary, len(world.tracker.reads) - before[0]


def test_new_bests_that_came_during_a_long_pass_save_the_job() -> None:
    world, job = falling()
    summary, _ = slow_pass(world, 37.0, meanwhile=(0.85, 0.9, 0.95))
    assert "job 1: since this pass read its run that has changed, or may have" in summary
    assert world.cluster.cancelled == []
    world.tick(30.0)

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.ABANDONED)]


def test_falls_that_came_during_a_long_pass_are_read_by_the_next_which_stops_the_job() -> None:
    world, job = falling()
    slow_pass(world, 37.0, meanwhile=(0.5,))
    assert world.cluster.cancelled == []
    world.tick(30.0)

    assert world.cluster.cancelled == [(job, 0)]


def test_where_nothing_was_logged_meanwhile_a_long_pass_acts_all_the_same() -> None:
    """So a site whose passes always take long stops jobs, too."""
    world, job = falling()
    slow_pass(world, 37.0)

    assert world.cluster.cancelled == [(job, 0)]


def test_where_the_run_cannot_be_read_again_the_act_waits() -> None:
    world, _ = falling()
    slow_pass(world, 37.0, down=True)

    assert world.cluster.cancelled == []
    assert [state for _, state in intents(world)] == [State.PROMOTED]


@pytest.mark.parametrize(
    ("tick_s", "took_s", "again"), [(30.0, 15.0, 0), (30.0, 15.1, 1), (2.0, 10.0, 0), (2.0, 10.1, 1)]
)
def test_runs_are_read_again_after_half_a_tick_and_not_before_ten_seconds(
    tick_s: float, took_s: float, again: int
) -> None:
    world, job = falling(tick_s)
    _, reads = slow_pass(world, took_s)

    assert world.cluster.cancelled == [(job, 0)]
    assert reads == again
