"""Kill the daemon at every effect of a stop, before and after it: the end is the same, nothing is done twice."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from evalstopd.core.model import Rung, StopAction
from evalstopd.ports import Ports
from evalstopd.store.memory import MemoryStore
from tests.fakes.overlaid import Overlaid
from tests.fakes.registry import FakeRegistry
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import undo_by_owner

EFFECTS = {
    "record", "pin", "publish", "drop", "tag", "mark_killed", "cancel", "requeue_hold", "release", "signal", "tell",
    "set_comment", "steer", "register", "put_back",
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
        try:
            return call()
        finally:
            if self.count == self.at and self.after:
                self._blow()

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


def fused(world: World, fuse: Fuse, **methods: object) -> Ports:
    """Return the world's ports through a fuse, with these methods in place of the cluster's."""
    ports = world.ports()
    return replace(
        ports,
        cluster=Fused(Overlaid(ports.cluster, **methods), fuse),
        runs=Fused(ports.runs, fuse),
        keeper=Fused(ports.keeper, fuse),
        store=Fused(ports.store, fuse),
        notifier=Fused(ports.notifier, fuse),
        registry=Fused(ports.registry, fuse) if ports.registry is not None else None,
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


def live_requeued(fuse: Fuse) -> World:
    """The story of a job that is requeued right before our cancel and runs again by then: its next life is ended."""
    world = World(replace(RULES, notice_s=0.5), gpus=8)
    job = world.train("r1")
    world.cluster.submit(1002, 8)
    cancel = world.cluster.cancel

    def requeue_first(job_ids):  # type: ignore[no-untyped-def]
        if not world.cluster.jobs[job].restarts:
            world.clock.time_s += 1
            world.cluster.requeue(job)
            world.cluster.start()
        return cancel(job_ids)

    ports = fused(world, fuse, cancel=requeue_first)
    for number, score in enumerate(LONG_FALL, 1):
        world.evaluate(job, "r1", number * 10, score)
        for _ in range(2):
            try:
                world.tick(0.5, ports)
            except Killed:
                world.tick(0.0, ports)
    return world


def test_killed_at_any_effect_a_stop_that_hit_the_next_life_is_booked_and_told_once() -> None:
    undisturbed = Fuse(0, after=False)
    live_requeued(undisturbed)
    assert {"cancel", "mark_killed", "tell"} <= set(undisturbed.names)
    for at in range(1, undisturbed.count + 1):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            world = live_requeued(fuse)
            where = f"killed {'after' if after else 'before'} effect {at}"
            store = world.store
            assert isinstance(store, MemoryStore)
            (intent,) = store.intents_of([store.recent(1)[0].key])

            assert fuse.blown, where
            assert intent.state is State.CONFIRMED, where
            assert "its next life was ended" in intent.note, where
            assert world.cluster.cancelled == [("1", 1)], where
            assert world.tracker.runs["r1"].status == "KILLED", where
            subjects = [message.subject for message in world.notifier.told]
            assert len(subjects) == len(set(subjects)), where


def live_and_undo(fuse: Fuse, action: StopAction, *, fixed: bool = False) -> World:
    """The same story with a reversible stop, which the owner undoes; then the job falls on in its next life."""
    world = World(replace(RULES, notice_s=0.5, action=action), gpus=8)
    job = world.train("r1")
    if fixed:
        world.cluster.fixed.add(job)
    other = world.cluster.submit(1002, 8)
    ports = fused(world, fuse)

    def pass_time(scores: tuple[float, ...], first: int) -> None:
        for number, score in enumerate(scores, first):
            world.evaluate(job, "r1", number * 10, score)
            for _ in range(3):
                try:
                    world.tick(0.5, ports)
                except Killed:
                    world.tick(0.0, ports)

    pass_time(LONG_FALL, 1)
    if not fixed:
        undo_by_owner(world, job)
        world.cluster.finish(other)
        pass_time((0.3, 0.2, 0.1, 0.1), len(LONG_FALL) + 1)
    return world


def undone_state(world: World) -> tuple[object, ...]:
    store = world.store
    assert isinstance(store, MemoryStore)
    (watch,) = store.recent(10)
    return (
        [
            (i.state, i.evidence.trigger_step, i.kept_path, i.handed_to, i.held_life is not None)
            for i in store.intents_of([watch.key])
        ],
        # A pass more, after a kill, may read the kept eval a second sooner.
        [(c.user, c.account, 2.4 <= c.gpu_hours * 3600 / 8 <= 3.6) for c in store.credits_of([watch.key])],
        (watch.terms.rung, watch.evals >= 8, watch.best_step, watch.life.restarts, watch.ending),
        (world.cluster.jobs["1"].phase, world.cluster.jobs["1"].restarts, world.cluster.jobs["1"].comment),
        world.keeper.best,
        dict(world.tracker.runs["r1"].tags.items()),
    )


@pytest.mark.parametrize("action", [StopAction.REQUEUE_HOLD, StopAction.HOLD_OR_CANCEL])
def test_killed_at_any_effect_of_a_stop_that_is_undone_the_end_is_the_same(action: StopAction) -> None:
    """One requeue in all, one credit, no second stop: also where the daemon dies round the undo itself."""
    undisturbed = Fuse(0, after=False)
    wanted = undone_state(live_and_undo(undisturbed, action))
    assert [each[:2] for each in wanted[0]] == [(State.UNDONE, 50)]
    assert wanted[1] == [("alice", "ml", True)]
    assert wanted[2] == (Rung.OBSERVE, True, 30, 1, None)
    assert wanted[3][:2] == ("running", 1)
    assert "evalstop=keep" in wanted[3][2]
    assert {"requeue_hold", "record", "tag", "tell"} <= set(undisturbed.names)
    assert not {"cancel", "release", "set_comment"} & set(undisturbed.names)
    for at in range(1, undisturbed.count + 1):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            world = live_and_undo(fuse, action)
            where = f"killed {'after' if after else 'before'} effect {at}"

            assert fuse.blown, where
            assert undone_state(world) == wanted, where
            assert world.cluster.requeued == [("1", 0)], where
            assert world.cluster.cancelled == [], where
            subjects = [message.subject for message in world.notifier.told]
            assert len(subjects) == len(set(subjects)), where


@pytest.mark.parametrize(
    ("action", "state", "cancels"),
    [(StopAction.REQUEUE_HOLD, State.ABANDONED, 0), (StopAction.HOLD_OR_CANCEL, State.CONFIRMED, 1)],
)
def test_killed_at_any_effect_a_job_that_may_not_be_requeued_goes_on_or_is_cancelled_as_the_site_says(
    action: StopAction, state: State, cancels: int
) -> None:
    undisturbed = Fuse(0, after=False)
    live_and_undo(undisturbed, action, fixed=True)
    assert undisturbed.names.count("requeue_hold") == 1
    # The last effects belong to later evals: a pass more, after a kill, may save one of them.
    for at in range(1, undisturbed.count - 2):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            world = live_and_undo(fuse, action, fixed=True)
            where = f"killed {'after' if after else 'before'} effect {at}"
            store = world.store
            assert isinstance(store, MemoryStore)
            (watch,) = store.recent(10)
            first = store.intents_of([watch.key])[-1]

            assert fuse.blown, where
            assert first.state is state, where
            assert len(world.cluster.cancelled) == cancels, where
            assert world.cluster.requeued == [], where
            assert world.cluster.calls.count("requeue_hold") <= 2, where


def live_with_registry(fuse: Fuse) -> World:
    """The story of a stop on a site with a registry, which is down for the first passes."""
    world = World(replace(RULES, notice_s=0.5), gpus=8)
    registry = world.registry = FakeRegistry(down=True)
    job = world.train("r1")
    world.cluster.submit(1002, 8)
    ports = fused(world, fuse)
    for number, score in enumerate((*LONG_FALL, 0.1), 1):
        world.evaluate(job, "r1", number * 10, score)
        registry.down = number < 8
        for _ in range(3):
            try:
                world.tick(0.5, ports)
            except Killed:
                registry.die()
                world.tick(0.0, ports)
    return world


def test_killed_at_any_effect_the_checkpoint_is_registered_once_and_the_registry_holds_up_no_stop() -> None:
    undisturbed = Fuse(0, after=False)
    wanted = live_with_registry(undisturbed)
    name = "evalstop-c-1"
    assert "register" in undisturbed.names
    assert wanted.registry is not None
    assert wanted.registry.aliases == {name: 1}
    assert wanted.tracker.runs["r1"].tags["evalstop.model"] == f"models:/{name}/1"
    for at in range(1, undisturbed.count + 1):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            world = live_with_registry(fuse)
            where = f"killed {'after' if after else 'before'} effect {at}"
            store, registry = world.store, world.registry
            assert isinstance(store, MemoryStore)
            assert registry is not None
            (watch,) = store.recent(10)
            (intent,) = store.intents_of([watch.key])

            assert fuse.blown, where
            assert intent.state is State.CONFIRMED, where
            assert intent.model == f"models:/{name}/1", where
            assert [[each.step for each in held] for held in registry.versions.values()] == [[30]], where
            assert registry.aliases == {name: 1}, where
            kinds = [event.kind for event in store.events_of([intent.id])]
            assert kinds.count("registry-waits") <= 1, where
            assert kinds.count("registered") == 1, where
