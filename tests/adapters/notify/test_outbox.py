"""The outbox: nothing waits for a channel, nothing is lost in silence, nothing is sent twice."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.adapters.notify.several import AlsoLogged, Several
from evalstopd.core.model import JobKey
from evalstopd.errors import InDoubt, Rejected, Unavailable
from evalstopd.ports import Message, Receipt, to_admin

PATIENCE_S = 30


@dataclass
class Gate:
    """A channel that sends nothing until it is opened; it breaks on the subjects that it is told to."""

    open: threading.Event = field(default_factory=threading.Event)
    busy: threading.Event = field(default_factory=threading.Event)
    sent: list[str] = field(default_factory=list)
    breaks: dict[str, Exception] = field(default_factory=dict)

    def send(self, message: Message) -> str:
        self.busy.set()
        assert self.open.wait(PATIENCE_S)
        if message.subject in self.breaks:
            raise self.breaks[message.subject]
        self.sent.append(message.subject)
        return "gate"

    def check(self) -> str:
        if not self.open.is_set():
            raise Unavailable("the gate is shut")
        return "the gate is open"


@dataclass
class Slow:
    """A channel that sends one message for each `let`."""

    let: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    sent: list[str] = field(default_factory=list)

    def send(self, message: Message) -> str:
        self.begun.release()
        assert self.let.acquire(timeout=PATIENCE_S)
        self.sent.append(message.subject)
        return "slow"

    def check(self) -> str:
        return "slow"


def message(subject: str, uid: int = 1001) -> Message:
    return Message(JobKey("c", "7", uid, 100), f"u{uid}", subject, "text", "warning", subject)


def fates(receipts: Sequence[Receipt]) -> list[tuple[str, bool, str]]:
    return [(each.message.subject, each.sent, each.how) for each in receipts]


def test_telling_never_waits_and_what_became_of_it_is_known_later_in_order() -> None:
    gate = Gate(breaks={"2": Unavailable("no route\n"), "3": RuntimeError("broken")})
    outbox = Outbox(gate, drain_s=PATIENCE_S)
    assert [outbox.tell(message(str(number))) for number in range(1, 5)] == [None] * 4
    assert outbox.receipts() == []
    gate.open.set()
    outbox.close()

    assert gate.sent == ["1", "4"]
    assert fates(outbox.receipts()) == [
        ("1", True, "gate"), ("2", False, r"no route\n"), ("3", False, "RuntimeError: broken"), ("4", True, "gate"),
    ]  # fmt: skip
    assert outbox.receipts() == []


def test_a_full_outbox_drops_says_so_once_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    outbox = Outbox(gate, most=2, drain_s=PATIENCE_S)
    outbox.tell(message("first"))
    assert gate.busy.wait(PATIENCE_S)
    with caplog.at_level(logging.WARNING):
        told = [outbox.tell(message(str(number))) for number in range(5)]
        gate.open.set()
        outbox.close()

    assert [each is None for each in told] == [True, True, False, False, False]
    assert {each.how for each in told if each is not None} == {"too many messages waited to be sent"}
    assert gate.sent == ["first", "0", "1"]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "2 messages wait to be sent: further ones of who has most waiting are dropped",
        "3 messages were dropped",
    ]


def test_one_owners_flood_costs_anothers_message_the_time_of_one_however_late_it_comes() -> None:
    slow = Slow()
    outbox = Outbox(slow, drain_s=PATIENCE_S)
    for number in range(22):
        outbox.tell(message(f"a{number}"))
    for _ in range(3):
        assert slow.begun.acquire(timeout=PATIENCE_S)
        slow.let.release()
    assert slow.begun.acquire(timeout=PATIENCE_S)
    outbox.tell(message("b", uid=1002))
    for _ in range(20):
        slow.let.release()
    outbox.close()

    assert slow.sent == ["a0", "a1", "a2", "a3", "b", *(f"a{number}" for number in range(4, 22))]


def test_owners_and_the_admin_are_served_in_turns_and_each_in_order() -> None:
    gate = Gate()
    outbox = Outbox(gate, drain_s=PATIENCE_S)
    outbox.tell(message("first"))
    assert gate.busy.wait(PATIENCE_S)
    for each in [message("a1"), message("a2"), message("b1", 1002), message("b2", 1002), message("root", 0)]:
        outbox.tell(each)
    for subject in ("x1", "x2"):
        outbox.tell(to_admin(subject, "text", "note", subject))
    gate.open.set()
    outbox.close()

    assert gate.sent == ["first", "b1", "root", "x1", "a1", "b2", "x2", "a2"]


def test_a_full_outbox_gives_up_the_newest_of_the_flood_and_nothing_of_who_has_few() -> None:
    gate = Gate()
    outbox = Outbox(gate, most=4, drain_s=PATIENCE_S)
    outbox.tell(message("first"))
    assert gate.busy.wait(PATIENCE_S)
    told = [outbox.tell(message(f"a{number}")) for number in range(6)]
    told += [outbox.tell(message("b1", 1002)), outbox.tell(to_admin("x", "text", "note", "x"))]

    assert [each.message.subject for each in told if each is not None] == ["a4", "a5"]
    why = "too many messages waited to be sent"
    assert fates(outbox.receipts()) == [("a3", False, why), ("a2", False, why)]
    at_once = outbox.tell(message("b2", 1002))
    assert at_once is not None
    assert fates([at_once]) == [("b2", False, why)]
    gate.open.set()
    outbox.close()
    assert gate.sent == ["first", "b1", "x", "a0", "a1"]
    assert [subject for subject, *_ in fates(outbox.receipts())] == gate.sent


def test_at_the_end_what_still_waits_is_given_up_and_of_what_is_under_way_nothing_is_known() -> None:
    gate = Gate()
    outbox = Outbox(gate, drain_s=0.2)
    outbox.tell(message("under way"))
    assert gate.busy.wait(PATIENCE_S)
    outbox.tell(message("waiting"))
    outbox.close()

    assert fates(outbox.receipts()) == [("waiting", False, "the daemon ended before it was sent")]
    gate.open.set()


def test_an_outbox_that_was_never_used_starts_no_thread() -> None:
    before = threading.active_count()
    Outbox(Gate()).close()

    assert threading.active_count() == before


def test_of_several_channels_one_is_enough_and_the_others_trouble_is_said() -> None:
    shut, opened = Gate(breaks={"a": Unavailable("mail is down")}), Gate()
    shut.open.set()
    opened.open.set()

    assert Several((shut, opened)).send(message("a")) == "gate; but mail is down"
    with pytest.raises(Unavailable, match="mail is down; mail is down"):
        Several((shut, shut)).send(message("a"))


@pytest.mark.parametrize("broken", [InDoubt("answer lost"), RuntimeError("answer lost")])
def test_of_several_channels_one_in_doubt_makes_all_doubtful_unless_one_took_it(broken: Exception) -> None:
    doubtful, shut, opened = Gate(breaks={"a": broken}), Gate(breaks={"a": Unavailable("mail is down")}), Gate()
    for gate in (doubtful, shut, opened):
        gate.open.set()

    assert Several((doubtful, opened)).send(message("a")).startswith("gate; but ")
    for channels in [(doubtful, shut), (shut, doubtful)]:
        with pytest.raises(InDoubt, match="answer lost; mail is down"):
            Several(channels).send(message("a"))


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (Unavailable("x"), "not-told"),
        (Rejected("x"), "not-told"),
        (InDoubt("x"), "perhaps-told"),
        (RuntimeError("x"), "perhaps-told"),
    ],
)
def test_only_what_surely_was_not_taken_is_booked_as_not_told(error: Exception, event: str) -> None:
    gate = Gate(breaks={"a": error})
    gate.open.set()
    outbox = Outbox(gate, drain_s=PATIENCE_S)
    outbox.tell(message("a"))
    outbox.close()
    (receipt,) = outbox.receipts()

    assert (receipt.event, receipt.sent) == (event, False)
    assert receipt.text.startswith("whether the owner was told is unknown (warning): ") == (event == "perhaps-told")


def test_the_check_of_several_finds_the_one_that_is_broken() -> None:
    opened = Gate()
    opened.open.set()
    with pytest.raises(Unavailable, match="the gate is shut"):
        Several((opened, Gate())).check()


def test_what_is_also_logged_is_only_told_when_the_outbox_has_sent_it(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    both = AlsoLogged(LogNotifier(), Outbox(gate, drain_s=PATIENCE_S))
    with caplog.at_level(logging.WARNING):
        assert both.tell(message("x\x1b[31m")) is None
    assert both.receipts() == []
    gate.open.set()
    both.close()

    assert r"x\x1b[31m" in caplog.text
    assert [each.sent for each in both.receipts()] == [True]
