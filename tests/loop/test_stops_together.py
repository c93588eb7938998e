"""Jobs whose stops fall into one pass end together: one write before, one request; and each as if it were alone."""

from dataclasses import dataclass, field, replace

import pytest

from evalstopd.core.caps import Caps
from evalstopd.core.intent import State
from evalstopd.ports import PinPlace, PinReport
from evalstopd.store.memory import MemoryStore
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import RULES, World
from tests.loop.test_crash import LONG_FALL, Fuse, Killed, fused

RUNS = ("r1", "r2")


def live(fuse: Fuse) -> World:
    """Two jobs fall at once; whenever the daemon is killed, the next tick is a new daemon's."""
    world = World(replace(RULES, notice_s=0.5, caps=Caps(gpu_share=1.0)), gpus=16)
    jobs = {run: world.train(run) for run in RUNS}
    ports = fused(world, fuse)
    for number, score in enumerate(LONG_FALL, 1):
        for run, job in jobs.items():
            world.evaluate(job, run, number * 10, score)
        for _ in range(2):
            try:
                world.tick(0.5, ports)
            except Killed:
                world.notifier.die()
                world.tick(0.0, ports)
    return world


def ends(world: World) -> list[tuple[object, ...]]:
    store = world.store
    assert isinstance(store, MemoryStore)
    watches = sorted(store.recent(10), key=lambda watch: watch.key.job_id)
    found = {each.key: each for each in store.intents_of([watch.key for watch in watches])}
    intents = [found[watch.key] for watch in watches]
    return [(each.key.job_id, each.state, each.evidence.trigger_step, each.kept_path) for each in intents]


def test_what_stops_together_is_announced_in_one_write_and_cancelled_by_one_request() -> None:
    fuse = Fuse(0, after=False)
    world = live(fuse)

    assert [state for _, state, *_ in ends(world)] == [State.CONFIRMED] * 2
    assert fuse.names.count("cancel") == 1
    at = fuse.names.index("cancel")
    # Promoted one by one, each with its own write; then one for all requests, and one for what was seen of them.
    assert fuse.names[at - 3 : at + 2] == ["publish", "record", "record", "cancel", "record"]


def test_killed_at_any_effect_all_that_stop_together_end_once_and_the_same() -> None:
    undisturbed = Fuse(0, after=False)
    wanted = ends(live(undisturbed))
    for at in range(1, undisturbed.count + 1):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            world = live(fuse)
            where = f"killed {'after' if after else 'before'} effect {at}"

            assert fuse.blown, where
            assert ends(world) == wanted, where
            assert sorted(world.cluster.cancelled) == [("1", 0), ("2", 0)], where
            told = [(message.key, message.subject) for message in world.notifier.told]
            assert len(told) == len(set(told)), where


@dataclass(slots=True)
class TakingTime(FakeKeeper):
    """A keeper that needs 0.3 s to publish; `ended` has how many jobs had been asked to end before each time."""

    world: World | None = None
    ended: list[int] = field(default_factory=list)

    def publish(self, place: PinPlace) -> PinReport:
        """Publish, slowly."""
        assert self.world is not None
        self.world.clock.time_s += 0.3
        self.ended.append(len(self.world.cluster.cancelled))
        return FakeKeeper.publish(self, place)


@pytest.mark.parametrize(
    ("share", "ended", "stopped"), [(1.0, [0, 0, 0, 3, 3], 5), (0.5, [0] * 5, 2)], ids=["no cap", "a cap that binds"]
)
def test_who_is_ready_does_not_wait_for_all_others_unless_caps_must_choose(
    share: float, ended: list[int], stopped: int
) -> None:
    world = World(replace(RULES, caps=Caps(gpu_share=share)), gpus=40)
    keeper = TakingTime(world=world)
    world.keeper = keeper
    jobs = {f"r{number}": world.train(f"r{number}") for number in range(5)}
    for number, score in enumerate(LONG_FALL[:5], 1):
        for run, job in jobs.items():
            world.evaluate(job, run, number * 10, score)
        world.tick(1.0)

    assert keeper.ended == ended
    assert len(world.cluster.cancelled) == stopped
