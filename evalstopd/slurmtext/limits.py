"""Time limits as squeue prints them: `[D-]HH:MM:SS`, `MM:SS`, or a word where there is none."""

import re

_LIMIT = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,2})")


def limit_of(text: str) -> int | None:
    """Return a time limit in seconds; None for UNLIMITED, NOT_SET and whatever else is no time."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
