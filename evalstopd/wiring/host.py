"""What the daemon's own machine has: its clock, the kill switch, its accounts' names."""

import pwd

from evalstopd.adapters.system import KillSwitchFile, SystemClock
from evalstopd.settings import Settings


def make_clock() -> SystemClock:
    """Return the clock."""
    return SystemClock()


def make_kill_switch(settings: Settings) -> KillSwitchFile:
    """Return the kill switch."""
    return KillSwitchFile(settings.daemon.kill_switch)


def account_name(uid: int) -> str:
    """Return the name of an account, empty where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
