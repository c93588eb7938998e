"""Whether another machine's clock agrees with ours: jobs, points and decisions are dated by three of them."""

from collections.abc import Callable

from evalstopd.errors import Unavailable

MOST_S = 5.0
"""Slurm's and HTTP's times are whole seconds; beyond this, a clock is not kept by NTP."""


def agreeing(whose: str, ask: Callable[[], float], now_s: Callable[[], float]) -> str:
    """Ask for another clock's time and compare; return how far apart. Raises Unavailable where that is too far.

    The answer may be from any moment between asking and hearing, and a second is cut off.
    """
    asked_s = now_s()
    theirs_s = ask()
    heard_s = now_s()
    off_s = max(asked_s - (theirs_s + 1.0), theirs_s - heard_s, 0.0)
    ahead = theirs_s > heard_s
    if off_s > MOST_S:
        where = "ahead of" if ahead else "behind"
        raise Unavailable(f"{whose}'s clock is {off_s:.0f} s {where} ours: keep both by NTP")
    return f"{whose} agrees within {off_s + (heard_s - asked_s) + 1.0:.1f} s"
