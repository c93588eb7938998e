"""The machine itself behind its ports: the clock, the kill-switch file, and whether a process still runs."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

# Of /proc/PID/stat, behind the state: when it began, in ticks since the machine did.
_START_FIELD = 18
_START_WITHIN_S = 2.0
_ENDED = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's own clock."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


def boottime_s() -> float:
    """Return seconds since some moment by a clock that never goes back and counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def is_running(pid: int, by_s: float) -> bool:
    """Tell whether the process that had this id at a moment (seconds since the epoch) still runs; in doubt it does.

    One that began later is another with the same id, and one that only waits to be reaped runs no more.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # another account's
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        age_s = boottime_s() - int(rest[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return True
    return state not in _ENDED and time.time() - age_s <= by_s + _START_WITHIN_S


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
