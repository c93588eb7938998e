"""Messages of many jobs in one pass, which are fair to each owner; and messages of which nobody knows what became."""

import threading
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.core.caps import SITE
from evalstopd.core.model import Rung
from evalstopd.core.words import early_state
from evalstopd.loop import Loop, Stance
from evalstopd.loop.telling import book_admins
from evalstopd.ports import Message, Receipt, to_admin
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.test_crash import LONG_FALL
from tests.loop.told import events, said

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


LOST = "answer lost"


@pytest.mark.parametrize("later", [False, True])
def test_a_message_in_doubt_is_unknown_counted_as_such_and_never_sent_again(later: bool) -> None:
    world = World(replace(RULES, rule="k-declines:k=1", notice_s=2.5))
    world.notifier.doubt, world.notifier.later = LOST, later
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.evaluate(job, "r1", 40, RISE_AND_FALL[3])
    counts = sum((world.tick(after_s).counts for after_s in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)), Counter[str]())

    assert world.cluster.cancelled == [(job, 0)]
    assert [each.kind for each in world.notifier.told] == ["warning", "stopped"]
    unknown = [f"whether the owner was told is unknown ({kind}): {LOST}" for kind in ("warning", "stopped")]
    assert [text for _, text in events(world) if LOST in text] == unknown
    assert (counts["perhaps told"], counts["not told"]) == (2, 0)


@pytest.mark.parametrize("later", [False, True])
def test_an_early_warning_in_doubt_is_no_notice_and_shown_as_unknown(later: bool) -> None:
    """Warned in doubt at 1004, decided and told at 1005: nothing before 1007.5."""
    world = World(replace(RULES, notice_s=2.5))
    world.notifier.doubt, world.notifier.later = LOST, later
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.notifier.doubt = ""
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    world.tick()

    assert said(world, "early-warning-perhaps-told") == [
        f"whether the owner was told is unknown (early-warning): {LOST}"
    ]
    assert said(world, "early-warning-not-told") == said(world, "early-warning-told") == []
    assert isinstance(world.store, MemoryStore)
    early = world.store.recent(1)[0].early
    assert early is not None
    assert early_state(early) == "whether the owner was told at step 40, declining 1 of 2 is not known"
    assert [each.kind for each in world.notifier.told] == ["early-warning", "warning"]
    world.tick(2.0)
    assert world.cluster.cancelled == []
    world.tick(0.5)
    assert world.cluster.cancelled == [(job, 0)]


def test_an_admins_message_in_doubt_is_booked_as_unknown() -> None:
    receipt = Receipt(to_admin("s", "t", "enforce-override", "ref"), sent=False, how=LOST, doubtful=True)
    store = MemoryStore()
    book_admins(store, [receipt], 1.0)

    (remark,) = store.remarks_of([SITE])
    assert remark.code == "enforce-override-perhaps-told"
    assert remark.text == f"whether the admin was told is unknown (enforce-override): {LOST}"


def test_what_became_of_a_message_is_booked_also_where_the_gpus_were_taken_at_once() -> None:
    """Nothing else is left to note of such a stop when the message is seen to be sent."""
    world = World(gpus=8)
    world.notifier.later = True
    job = world.train("r1")
    world.cluster.submit(1002, 8)
    for number, score in enumerate(LONG_FALL, 1):
        world.evaluate(job, "r1", number * 10, score)
        for _ in range(2):
            world.tick(0.5)

    store = world.store
    assert isinstance(store, MemoryStore)
    (intent,) = store.intents_of([watch.key for watch in store.recent(10) if watch.key.job_id == job])
    kinds = [event.kind for event in store.events_of([intent.id])]
    assert (intent.handed_to, intent.telling) == (("2",), "")
    assert kinds[-1] == "told" or kinds[-2:] == ["told", "handed"]
