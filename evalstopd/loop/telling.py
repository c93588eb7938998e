"""Messages to owners: recorded before they are sent, never sent again, booked once it is known what became of them."""

from collections.abc import Sequence
from dataclasses import replace

from evalstopd.core.caps import SITE
from evalstopd.core.watch import Remark, Watch
from evalstopd.core.words import nearing
from evalstopd.loop.ledger import Ledger
from evalstopd.loop.report import Tally
from evalstopd.ports import Book, Changes, Message, Notifier, Ports, Receipt, Store, to_admin

EARLY = "early-warning"
WARNING = "warning"
STOPPED = "stopped"
UNDONE = "undone"
GIVEN_UP = "given-up"
UNDER_WAY = "the message to the owner is under way"
_LIFTED = "a limit was lifted in writing"


def early_remark(watch: Watch, now_s: float) -> Remark:
    """Return the line that is kept of an early warning for good."""
    return Remark(watch.key.text, EARLY, nearing(watch), now_s)


def tell_early(ports: Ports, warned: Sequence[Watch], tally: Tally) -> None:
    """Tell owners that their jobs are one step from a stop; that they are being told is committed already."""
    for watch in warned:
        message = Message(watch.key, watch.user, "your job is close to a stop", nearing(watch), EARLY, _ref(watch))
        receipt = _withheld(ports, message) or ports.notifier.tell(message)
        tally.add("warned early")
        count(tally, receipt)
        if receipt is not None:
            ports.store.record(_outcome(watch, receipt, ports.clock.now_s()))


def count(tally: Tally, receipt: Receipt | None) -> None:
    """Count a message that did not reach its owner, or may not have: so a site's figures show a broken mail server."""
    if receipt is not None and not receipt.sent and not receipt.message.for_admin:
        tally.add("perhaps told" if receipt.doubtful else "not told")


def tell_admin(store: Store, notifier: Notifier, noted: Sequence[Remark], now_s: float, subject: str = _LIFTED) -> None:
    """Tell the site's admin what was just recorded: what an admin put in writing, say. Not told again after a crash."""
    for each in noted:
        message = to_admin(subject, each.text, each.code, f"{each.subject}:{each.code}:{each.at_s:.0f}")
        receipt = notifier.tell(message)
        book_admins(store, [receipt] if receipt is not None else [], now_s)


def book_admins(store: Store, receipts: Sequence[Receipt], now_s: float) -> None:
    """Record what became of messages to the site's admin."""
    admins = [each for each in receipts if each.message.for_admin]
    remarks = tuple(Remark(SITE, f"{each.message.kind}-{each.event}", each.text, now_s) for each in admins)
    if remarks:
        store.record(Changes(remarks=remarks))


def book_receipts(ports: Ports, book: Book, receipts: Sequence[Receipt], now_s: float) -> Book:
    """Record what became of messages sent before, and return the book with it.

    What the book does not hold any more (an ended job, a stop long done) stays as it is: the daemon's log tells.
    """
    watches = {watch.key: watch for watch in book.watches}
    intents = {intent.id: intent for intent in book.intents}
    ledger = Ledger(ports.store, ports.clock)
    for receipt in receipts:
        message = receipt.message
        watch, intent = watches.get(message.key), intents.get(message.ref)
        if intent is not None:
            telling = "" if intent.telling == message.kind else intent.telling
            intents[intent.id] = ledger.note(intent, receipt.event, receipt.text, telling=telling)
        elif watch is not None and message.ref == _ref(watch):
            changes = _outcome(watch, receipt, now_s)
            ports.store.record(changes)
            watches[watch.key] = changes.watches[0]
    return replace(book, watches=tuple(watches.values()), intents=tuple(intents.values()))


def _outcome(watch: Watch, receipt: Receipt, now_s: float) -> Changes:
    """Return what is kept of the fate of an early warning: of one in doubt the watch goes on telling that."""
    early = watch.early
    if early is not None and not receipt.doubtful:
        told = replace(early, told_s=now_s) if receipt.sent else replace(early, failed=receipt.how)
        watch = replace(watch, early=told)
    remark = Remark(watch.key.text, f"{EARLY}-{receipt.event}", receipt.text, now_s)
    return Changes(watches=(watch,), remarks=(remark,))


def _ref(watch: Watch) -> str:
    """Return the name of a watch's early warning: one for each life."""
    early = watch.early
    return f"{watch.key.text}:{early.restarts}:{early.submitted_s}:{EARLY}" if early is not None else ""


def _withheld(ports: Ports, message: Message) -> Receipt | None:
    """Return why nothing may be said any more, if so."""
    if ports.kill_switch.engaged():
        return Receipt(message, sent=False, how="the kill switch is set")
    if ports.should_stop():
        return Receipt(message, sent=False, how="the daemon is ending")
    return None
