"""Messages of many jobs in one pass: one owner's flood neither drops nor holds back what another is told."""

import threading
from dataclasses import dataclass, field, replace

import pytest

from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.core.model import Rung
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Message
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import said

FLOOD, BOB = 22, 1002
PATIENCE_S = 60


@dataclass
class Held:
    """A channel whose first message takes until it is let go."""

    begun: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    sent: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> str:
        self.begun.set()
        assert self.go.wait(PATIENCE_S)
        self.sent.append(message)
        return "held"

    def check(self) -> str:
        return "held"


@pytest.mark.parametrize("place", [0, FLOOD // 2, FLOOD])
def test_a_flood_in_one_pass_neither_drops_nor_holds_back_anothers_message(place: int) -> None:
    """Of 22 jobs of one owner and one of another's that fall in one pass, five messages may wait."""
    world = World(replace(RULES, rung=Rung.WARN))
    channel = Held()
    outbox = Outbox(channel, most=5, drain_s=PATIENCE_S)
    loop = Loop(replace(world.ports(), notifier=outbox), Stance(world.rules))
    jobs = [world.train(f"r{n}", uid=BOB if n == place else 1001, gpus=1) for n in range(FLOOD + 1)]
    for number, score in enumerate(RISE_AND_FALL[:4], 1):
        for n, job in enumerate(jobs):
            world.evaluate(job, f"r{n}", number * 10, score)
        world.clock.time_s += 1.0
        loop.tick()
    assert channel.begun.wait(PATIENCE_S)
    assert channel.sent == []
    channel.go.set()
    loop.close()

    assert BOB in [each.key.uid for each in channel.sent[:2]]
    (late,) = set(said(world, "early-warning-not-told"))
    assert late == "the owner could not be told (early-warning): too many messages waited to be sent"
    assert isinstance(world.store, MemoryStore)
    (bobs,) = [watch for watch in world.store.recent(100) if watch.key.uid == BOB]
    assert [each.code for each in world.store.remarks_of([bobs.key.text])] == ["early-warning-told", "early-warning"]
    assert len(said(world, "early-warning-told")) + len(said(world, "early-warning-not-told")) == FLOOD + 1
