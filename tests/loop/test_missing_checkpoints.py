"""Checkpoints that do not come: thousands of them must not cost every pass a look at each, nor a stop its time."""

from dataclasses import replace

from evalstopd.ports import PinPlace, PinReport
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import RISE_AND_FALL, RULES, World

TICK_S = 30.0
MISSING = 200


class Counted(FakeKeeper):
    """A keeper that counts what it is asked to pin, and needs a while for each."""

    def __init__(self, world: World, seconds: float = 0.0) -> None:
        super().__init__()
        self.asked, self._world, self._seconds = 0, world, seconds

    def pin(self, place: PinPlace) -> PinReport:
        """Count, and let time pass."""
        self.asked += 1
        self._world.clock.time_s += self._seconds
        return super().pin(place)


def _world(seconds: float = 0.0) -> tuple[World, Counted]:
    world = World(replace(RULES, tick_s=TICK_S), gpus=8 * (MISSING + 1))
    world.keeper = keeper = Counted(world, seconds)
    for number in range(MISSING):
        world.train(f"m{number}")
        world.tracker.log(f"m{number}", 10, 0.5, timestamp_ms=int(world.clock.time_s * 1000))
    return world, keeper


def test_what_does_not_come_is_looked_for_ever_more_rarely():
    world, keeper = _world()
    asked = []
    for _ in range(120):
        before = keeper.asked
        world.tick(TICK_S)
        asked.append(keeper.asked - before)

    assert asked[:9] == [MISSING] * 9
    assert max(asked[20:]) < 0.8 * MISSING
    assert sum(asked[-20:]) / 20 < 0.2 * MISSING
    assert max(asked[-20:]) < 0.3 * MISSING


def test_a_checkpoint_that_comes_late_is_found_after_some_tenths_of_the_time_for_which_it_was_missed():
    world, keeper = _world()
    for _ in range(40):
        world.tick(TICK_S)
    for number in range(MISSING):
        keeper.save(f"/home/alice/out-m{number}", 10, at_s=world.clock.time_s)
    for _ in range(60):
        world.tick(TICK_S)

    assert len(keeper.pins) == MISSING


def test_a_stop_waits_for_half_a_tick_of_other_peoples_missing_checkpoints_at_most():
    world, _ = _world(seconds=0.5)
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(job, "r1", number * 10, score)
        began_s = world.clock.time_s + TICK_S
        world.tick(TICK_S)

    assert world.cluster.cancelled == [(job, 0)]
    assert world.clock.time_s - began_s <= TICK_S / 2 + 2.0
