"""Time limits as Slurm prints them: `[D-]HH:MM:SS`, `MM:SS`, a word where there is none, or a year instead."""

import re
from typing import TypeVar

_LIMIT = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,2})")
# For a job without a limit squeue shows UNLIMITED, and NONE as its end (tried on 22.05). But slurmctld reckons with 365
# days in place of none (job_end_time_reset in job_mgr.c, YEAR_MINUTES in backfill.c), and jobs come to bear that limit.
_NEVER_S = 365 * 86400
Seconds = TypeVar("Seconds", int, float)


def finite(limit_s: Seconds) -> Seconds | None:
    """Return a time limit; None for one of a year or more, which is how Slurm says that there is none."""
    return limit_s if limit_s < _NEVER_S else None


def limit_of(text: str) -> int | None:
    """Return a time limit in seconds; None for UNLIMITED, NOT_SET, a year or more, and what else is no time."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return finite(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
