"""The outbox: messages leave from a thread of their own, so that a slow or dead channel delays no tick."""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from evalstopd.adapters.notify.channel import Channel
from evalstopd.adapters.notify.log import journal_fields
from evalstopd.adapters.notify.text import harmless
from evalstopd.errors import EvalstopError
from evalstopd.ports import Message, Receipt

_log = logging.getLogger("evalstopd.notice")
MOST_WAITING = 200
DRAIN_S = 5.0
_LINE = 500
_TOO_LATE = "the daemon ended before it was sent"


class Outbox:
    """Implements Notifier over one channel: a bounded queue, one worker, no retry.

    A message that finds the queue full is dropped, which is said once until there is room again. `close` gives what
    still waits `drain_s` seconds; what was not sent by then is dropped, too. Only one thread may tell.
    """

    def __init__(self, channel: Channel, most: int = MOST_WAITING, drain_s: float = DRAIN_S) -> None:
        self._channel = channel
        self._drain_s = drain_s
        self._waiting: queue.Queue[Message | None] = queue.Queue(most)
        self._done: deque[Receipt] = deque()
        self._closed = threading.Event()
        self._worker: threading.Thread | None = None
        self._dropped = 0

    def tell(self, message: Message) -> Receipt | None:
        """Put one message into the queue; never waits."""
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="outbox", daemon=True)
            self._worker.start()
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            return self._drop(message)
        self._say_dropped()
        return None

    def receipts(self) -> Sequence[Receipt]:
        """Return what became of messages since the last call."""
        return [self._done.popleft() for _ in range(len(self._done))]

    def close(self) -> None:
        """Let the worker send what waits, for a short while; a message then still being sent is left to its fate."""
        self._say_dropped()
        if self._worker is None:
            return
        end_s = time.monotonic() + self._drain_s
        with suppress(queue.Full):
            self._waiting.put(None, timeout=self._drain_s)
        self._worker.join(max(0.0, end_s - time.monotonic()))
        if self._worker.is_alive():
            self._closed.set()
            self._leave()

    def _leave(self) -> None:
        """Give up what waits; of the one message that is being sent nothing is known."""
        left = 0
        with suppress(queue.Empty):
            while True:
                message = self._waiting.get_nowait()
                if message is not None:
                    left += 1
                    self._done.append(Receipt(message, sent=False, how=_TOO_LATE))
        _log.warning("the daemon ends with one message under way and %d not sent", left)

    def _drop(self, message: Message) -> Receipt:
        if not self._dropped:
            _log.warning("%d messages wait to be sent: further ones are dropped", self._waiting.maxsize)
        self._dropped += 1
        return Receipt(message, sent=False, how="too many messages waited to be sent")

    def _say_dropped(self) -> None:
        if self._dropped:
            _log.warning("%d messages were dropped", self._dropped)
            self._dropped = 0

    def _work(self) -> None:
        while (message := self._waiting.get()) is not None:
            late = self._closed.is_set()
            self._done.append(Receipt(message, sent=False, how=_TOO_LATE) if late else self._send(message))

    def _send(self, message: Message) -> Receipt:
        about = (message.kind, message.about)
        try:
            how = harmless(self._channel.send(message), _LINE)
        except EvalstopError as error:
            why = harmless(str(error), _LINE)
        except Exception as error:  # noqa: BLE001  one message that breaks a channel must not end the worker
            why = harmless(f"{type(error).__name__}: {error}", _LINE)
        else:
            _log.info("%s about %s sent: %s", *about, how, extra=journal_fields(message))
            return Receipt(message, sent=True, how=how)
        _log.warning("%s about %s not sent: %s", *about, why, extra=journal_fields(message))
        return Receipt(message, sent=False, how=why)
