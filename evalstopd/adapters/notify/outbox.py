"""The outbox: messages leave from a thread of their own, so that a slow or dead channel delays no tick."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from evalstopd.adapters.notify.channel import NOT_TAKEN, Channel, words
from evalstopd.adapters.notify.log import journal_fields
from evalstopd.adapters.notify.text import harmless
from evalstopd.adapters.notify.turns import Turns
from evalstopd.ports import Message, Receipt

_log = logging.getLogger("evalstopd.notice")
MOST_WAITING = 200
DRAIN_S = 5.0
_LINE = 500
_TOO_MANY = "too many messages waited to be sent"
_TOO_LATE = "the daemon ended before it was sent"


class Outbox:
    """Implements Notifier over one channel: a bounded queue in which owners take turns, one worker, no retry.

    Where it is full, the newest message of who has most waiting is dropped, which is said once until there is room
    again. `close` gives what still waits `drain_s` seconds; what was not sent by then is dropped, too. Only one thread
    may tell.
    """

    def __init__(self, channel: Channel, most: int = MOST_WAITING, drain_s: float = DRAIN_S) -> None:
        self._channel = channel
        self._drain_s = drain_s
        self._waiting = Turns(most)
        self._changed = threading.Condition()
        self._closing = False
        self._done: deque[Receipt] = deque()
        self._worker: threading.Thread | None = None
        self._dropped = 0

    def tell(self, message: Message) -> Receipt | None:
        """Put one message into the queue; never waits."""
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="outbox", daemon=True)
            self._worker.start()
        with self._changed:
            dropped = self._waiting.put(message)
            self._changed.notify()
        if dropped is None:
            self._say_dropped()
            return None
        return self._drop(dropped, message)

    def receipts(self) -> Sequence[Receipt]:
        """Return what became of messages since the last call."""
        return [self._done.popleft() for _ in range(len(self._done))]

    def close(self) -> None:
        """Let the worker send what waits, for a short while; a message then still being sent is left to its fate."""
        self._say_dropped()
        if self._worker is None:
            return
        end_s = time.monotonic() + self._drain_s
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._worker.join(max(0.0, end_s - time.monotonic()))
        if self._worker.is_alive():
            self._leave()

    def _leave(self) -> None:
        """Give up what waits; of the one message that is being sent nothing is known."""
        with self._changed:
            left = list(iter(self._waiting.take, None))
        self._done.extend(Receipt(message, sent=False, how=_TOO_LATE) for message in left)
        _log.warning("the daemon ends with one message under way and %d not sent", len(left))

    def _drop(self, dropped: Message, new: Message) -> Receipt | None:
        """Book a message that has no place; None where it is an older one than that which is told now."""
        if not self._dropped:
            most = self._waiting.most
            _log.warning("%d messages wait to be sent: further ones of who has most waiting are dropped", most)
        self._dropped += 1
        receipt = Receipt(dropped, sent=False, how=_TOO_MANY)
        if dropped is new:
            return receipt
        self._done.append(receipt)
        return None

    def _say_dropped(self) -> None:
        if self._dropped:
            _log.warning("%d messages were dropped", self._dropped)
            self._dropped = 0

    def _work(self) -> None:
        while (message := self._next()) is not None:
            self._done.append(self._send(message))

    def _next(self) -> Message | None:
        """Wait for a message; None where none will come any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or len(self._waiting) > 0)
            return self._waiting.take()

    def _send(self, message: Message) -> Receipt:
        about, fields = (message.kind, message.about), journal_fields(message)
        try:
            how = harmless(self._channel.send(message), _LINE)
        except NOT_TAKEN as error:
            why = harmless(words(error), _LINE)
            _log.warning("%s about %s not sent: %s", *about, why, extra=fields)
            return Receipt(message, sent=False, how=why)
        except Exception as error:  # noqa: BLE001  one message that breaks a channel must not end the worker
            why = harmless(words(error), _LINE)
            _log.warning("whether %s about %s was sent is unknown: %s", *about, why, extra=fields)
            return Receipt(message, sent=False, how=why, doubtful=True)
        _log.info("%s about %s sent: %s", *about, how, extra=fields)
        return Receipt(message, sent=True, how=how)
