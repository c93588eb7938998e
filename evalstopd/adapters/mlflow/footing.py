"""Whether a way of asking can be relied on just now: given up after a failure, tried again later, ever more rarely."""

import threading
import time
from collections.abc import Callable

_FIRST_WAIT_S = 60.0
_LONGEST_WAIT_S = 3_600.0


class Footing:
    """Holds until a failure; then not before a minute, two, four ... an hour later, until a success."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._failures = 0
        self._again_at = float("-inf")
        self._proven = False

    @property
    def holds(self) -> bool:
        """Tell whether to try this way now."""
        return self._now_s() >= self._again_at

    @property
    def proven(self) -> bool:
        """Tell whether it has worked since it last failed: if not, one question goes ahead of the others."""
        return self._proven

    def worked(self) -> None:
        """Note a success."""
        with self._lock:
            self._failures, self._proven = 0, True

    def failed(self) -> None:
        """Note a failure that was the way's own, not that of a run."""
        with self._lock:
            wait_s = min(_FIRST_WAIT_S * 2.0**self._failures, _LONGEST_WAIT_S)
            self._failures = min(self._failures + 1, 16)
            self._again_at, self._proven = self._now_s() + wait_s, False
