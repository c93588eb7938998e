"""Moments: what is done in a long pass carries the time at which it was done, and a notice runs from the telling."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from evalstopd.core.intent import Intent, IntentEvent
from evalstopd.ports import Message, PinPlace, PinReport, Receipt
from evalstopd.store.memory import MemoryStore
from tests.fakes.cluster import FakeCluster
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import RISE_AND_FALL, RULES, FakeClock, FakeNotifier, World

TICK_S = 30.0
SLOW_S = 12.0
NOTICE_S = 90.0


class Slow(FakeKeeper):
    """A keeper that needs a while for each pin and each publish."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def pin(self, place: PinPlace) -> PinReport:
        """Let time pass, then pin."""
        self._clock.time_s += SLOW_S
        return super().pin(place)

    def publish(self, place: PinPlace) -> PinReport:
        """Let time pass, then publish."""
        self._clock.time_s += SLOW_S
        return super().publish(place)


class Noting(FakeNotifier):
    """A notifier that remembers when it was asked to tell of a decided stop."""

    def __init__(self, clock: FakeClock, broken: str = "") -> None:
        super().__init__(broken=broken)
        self._clock = clock
        self.at_s: list[float] = []

    def tell(self, message: Message) -> Receipt | None:
        """Note the time, then tell."""
        if message.kind == "warning":
            self.at_s.append(self._clock.time_s)
        return super().tell(message)


class Asked(FakeCluster):
    """A cluster that remembers when it was asked to cancel."""

    asked_s: float = 0.0

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Note the time, then cancel."""
        self.asked_s = self.now_s()
        super().cancel(job_ids)


def long_passes(broken: str = "", **rules: object) -> tuple[World, Noting, Asked]:
    world = World(replace(RULES, tick_s=TICK_S, **rules), gpus=80)  # type: ignore[arg-type]
    world.keeper = Slow(world.clock)
    world.notifier = notifier = Noting(world.clock, broken)
    world.cluster = cluster = Asked(world.clock.now_s, 80)
    return world, notifier, cluster


def kept(world: World, job: str) -> tuple[Intent, dict[str, IntentEvent]]:
    store = world.store
    assert isinstance(store, MemoryStore)
    (intent,) = store.intents_of([each.key for each in store.recent(100) if each.key.job_id == job])
    return intent, {each.kind: each for each in store.events_of([intent.id])}


@pytest.mark.parametrize("broken", ["", "no route"])
def test_the_notice_runs_from_the_telling_although_the_pass_pinned_for_a_while_before(broken: str) -> None:
    """A message that could not be sent delays nothing: then it runs from the attempt."""
    world, notifier, cluster = long_passes(broken, rule="k-declines:k=1", notice_s=NOTICE_S)
    mine, others = world.train("a"), world.train("b", uid=1002)
    for number, score in enumerate(RISE_AND_FALL[:3], 1):
        world.evaluate(mine, "a", number * 10, score)
        world.tick(TICK_S)
    world.evaluate(mine, "a", 40, 0.7)
    world.evaluate(others, "b", 10, 0.5)
    decided_s = world.clock.time_s + TICK_S
    world.tick(TICK_S)
    intent, _ = kept(world, mine)

    assert (intent.created_s, notifier.at_s) == (decided_s, [decided_s + SLOW_S])
    assert intent.not_before_s == notifier.at_s[0] + NOTICE_S
    while not cluster.cancelled:
        world.tick(1.0)
    assert notifier.at_s[0] + NOTICE_S <= cluster.asked_s <= notifier.at_s[0] + NOTICE_S + SLOW_S + 1.0


def test_each_step_of_a_stop_is_booked_at_its_own_time_and_the_decision_at_the_pass() -> None:
    world, _, cluster = long_passes()
    job = world.train("a")
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(job, "a", number * 10, score)
        world.tick(TICK_S)
    while not cluster.cancelled:
        world.tick(TICK_S)
    intent, events = kept(world, job)
    began_s = intent.created_s

    assert events["planned"].at_s == events["warned"].at_s == began_s
    assert events["promoted"].at_s == events["cancelling"].at_s == events["cancelled"].at_s == cluster.asked_s
    assert intent.acted_s == intent.changed_s == cluster.asked_s == began_s + SLOW_S
