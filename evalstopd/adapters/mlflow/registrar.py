"""The Registry port: checkpoints are registered by a thread of their own, so that no pass waits for it."""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from evalstopd.errors import EvalstopError, Rejected
from evalstopd.ports import Promoted, Registered

_log = logging.getLogger("evalstopd.registry")
_MOST_WAITING = 200
_FIRST_WAIT_S = 60.0
_LONGEST_WAIT_S = 3_600.0


class Registrar:
    """Asks for one checkpoint after the other; what could not be reached is tried after a minute, two, up to an hour.

    It keeps nothing that must not be lost: who asks again after a crash starts from what the registry has.
    """

    def __init__(self, register: Callable[[Promoted], str], now_s: Callable[[], float] = time.monotonic) -> None:
        self._register = register
        self._now_s = now_s
        self._waiting: queue.Queue[Promoted] = queue.Queue(_MOST_WAITING)
        self._done: deque[Registered] = deque()
        self._asked: set[str] = set()
        self._failures = 0
        self._again_at = float("-inf")
        self._worker: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Return how many checkpoints were asked for and have no answer that was fetched."""
        return len(self._asked)

    def register(self, checkpoints: Sequence[Promoted]) -> None:
        """Put those into the queue that are not in it; never waits."""
        if self._now_s() < self._again_at:
            return
        for each in checkpoints:
            if each.intent_id not in self._asked and not self._waiting.full():
                self._asked.add(each.intent_id)
                self._waiting.put_nowait(each)
        if self._worker is None and self._asked:
            self._worker = threading.Thread(target=self._work, name="registry", daemon=True)
            self._worker.start()

    def registered(self) -> Sequence[Registered]:
        """Return what became of checkpoints since the last call; what failed may be asked for again."""
        found = [self._done.popleft() for _ in range(len(self._done))]
        self._asked -= {each.intent_id for each in found}
        if any(each.later for each in found):
            self._again_at = self._now_s() + min(_FIRST_WAIT_S * 2.0**self._failures, _LONGEST_WAIT_S)
            self._failures = min(self._failures + 1, 16)
        elif found:
            self._failures = 0
        return found

    def _work(self) -> None:
        while True:
            self._done.append(self._answer(self._waiting.get()))

    def _answer(self, checkpoint: Promoted) -> Registered:
        try:
            return Registered(checkpoint.intent_id, where=self._register(checkpoint))
        except Rejected as error:
            return Registered(checkpoint.intent_id, refused=str(error))
        except EvalstopError as error:
            return Registered(checkpoint.intent_id, later=str(error))
        except Exception as error:  # noqa: BLE001  one checkpoint that breaks it must not end the thread
            _log.exception("a checkpoint could not be registered")
            return Registered(checkpoint.intent_id, refused=f"{type(error).__name__}: {error}")
