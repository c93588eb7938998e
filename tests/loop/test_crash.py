"""Kill the daemon at every effect of a stop, before and after it: the end is the same, nothing is done twice."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from evalstopd.ports import Ports
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World

EFFECTS = {
    "record", "pin", "publish", "drop", "tag", "mark_killed", "cancel", "signal", "tell", "set_comment",
}  # fmt: skip


LONG_FALL = (*RISE_AND_FALL, 0.3, 0.2, 0.1)
SPIKE = (0.5, 0.6, 0.62, 0.95, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1)


class Killed(BaseException):
    """The process is gone: nothing in it may catch this."""


class Fuse:
    """Counts the effects of a life of the daemon and ends it before or after the chosen one."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.count, self.blown = at, after, 0, False
        self.names: list[str] = []

    def run(self, name: str, call: Callable[[], object]) -> object:
        self.count += 1
        self.names.append(name)
        if self.count == self.at and not self.after:
            self._blow()
        result = call()
        if self.count == self.at and self.after:
            self._blow()
        return result

    def _blow(self) -> None:
        self.blown = True
        raise Killed


class Fused:
    """A port whose effects run through a fuse."""

    def __init__(self, port: object, fuse: Fuse) -> None:
        self._port, self._fuse = port, fuse

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        method = getattr(self._port, name)
        if name not in EFFECTS:
            return method
        return lambda *args: self._fuse.run(name, lambda: method(*args))


def fused(world: World, fuse: Fuse) -> Ports:
    ports = world.ports()
    return replace(
        ports,
        cluster=Fused(ports.cluster, fuse),
        runs=Fused(ports.runs, fuse),
        keeper=Fused(ports.keeper, fuse),
        store=Fused(ports.store, fuse),
        notifier=Fused(ports.notifier, fuse),
    )


def end_state(world: World) -> tuple[object, ...]:
    store = world.store
    assert isinstance(store, MemoryStore)
    watches = store.recent(10)
    found = store.intents_of([watch.key for watch in watches])
    return (
        [(i.state, i.evidence.trigger_step, i.kept_path, i.handed_to) for i in found],
        world.keeper.best,
        world.tracker.runs["r1"].status,
        dict(world.tracker.runs["r1"].tags.items()),
        [(w.evals, w.declines, w.best_step, w.ending is not None) for w in watches],
        world.cluster.jobs["2"].phase,
    )


def live(fuse: Fuse, signal: str, rule: str, scores: tuple[float, ...], *, later: bool = False) -> World:
    """Run the whole story; whenever the daemon is killed, the next tick is a new daemon's."""
    world = World(replace(RULES, notice_s=0.5, rule=rule), gpus=8)
    world.notifier.later = later
    job = world.train("r1", comment=signal)
    world.cluster.submit(1002, 8)
    ports = fused(world, fuse)
    for number, score in enumerate(scores, 1):
        world.evaluate(job, "r1", number * 10, score)
        for _ in range(2):
            try:
                world.tick(0.5, ports)
            except Killed:
                world.notifier.die()
                world.tick(0.0, ports)
    return world


@pytest.mark.parametrize("later", [False, True], ids=["told at once", "told later"])
@pytest.mark.parametrize(
    ("signal", "rule", "scores", "trigger", "kept"),
    [
        ("", "k-declines:k=2", LONG_FALL, 50, 30),
        ("evalstop_signal=USR1@2", "k-declines:k=2", LONG_FALL, 50, 30),
        ("", "drop-test-safe:sigma=0.05", SPIKE, 60, 30),
    ],
)
def test_killed_at_any_effect_the_end_is_the_same_and_nothing_happens_twice(
    signal: str, rule: str, scores: tuple[float, ...], trigger: int, kept: int, later: bool
) -> None:
    """The last case keeps another checkpoint than the maximum's, which lies at step 40.

    A message of which it is only known later whether it was sent is lost sight of when the daemon dies.
    """
    undisturbed = Fuse(0, after=False)
    wanted = end_state(live(undisturbed, signal, rule, scores, later=later))
    assert wanted[0] == [(State.CONFIRMED, trigger, "/pins/c-1-1000/best", ("2",))]
    assert wanted[1] == {"c-1-1000": kept}
    assert {"pin", "publish", "tag", "tell", "cancel", "mark_killed", "record"} <= set(undisturbed.names)
    for at in range(1, undisturbed.count + 1):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            world = live(fuse, signal, rule, scores, later=later)
            where = f"killed {'after' if after else 'before'} effect {at}"

            assert fuse.blown, where
            assert end_state(world) == wanted, where
            assert len(world.cluster.cancelled) == 1, where
            assert len(world.cluster.signalled) <= 1, where
            subjects = [message.subject for message in world.notifier.told]
            assert len(subjects) == len(set(subjects)), where
