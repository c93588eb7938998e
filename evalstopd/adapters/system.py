"""The machine itself behind its ports: the clock and the kill-switch file."""

import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's own clock."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


def boottime_s() -> float:
    """Return seconds since some moment by a clock that never goes back and counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class KillSwitchFile:
    """A file whose presence stops all action; it needs neither store nor network."""

    path: Path

    def engaged(self) -> bool:
        """Tell whether the file is there; where that cannot be told, it counts as there."""
        try:
            self.path.lstat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True
