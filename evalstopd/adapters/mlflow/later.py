"""When a server that asks for patience is asked again: what its headers say, and for how long that is waited."""

import random
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_PAUSE_S = 2.0
_SHORTEST_S = 0.5
# Never sooner than it was asked for, and not all at the same moment.
_JITTER = 0.25
# Of a server that names a longer time than this it is the same: no pass waits so long.
_LONGEST_S = 86_400.0


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return what Retry-After (RFC 9110) says in seconds, a date by the server's own clock; None where it says none."""
    said = headers.get("Retry-After", "").strip()
    if said.isascii() and said.isdecimal():
        return min(float(said[:9]), _LONGEST_S)
    try:
        wait_s = (parsedate_to_datetime(said) - parsedate_to_datetime(headers.get("Date", ""))).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait_s, 0.0), _LONGEST_S)


def pause_s(after_s: float | None) -> float:
    """Return how long to wait for a server that asks for so many seconds, or does not say for how many."""
    asked_s = _PAUSE_S if after_s is None else max(after_s, _SHORTEST_S)
    return asked_s * random.uniform(1.0, 1.0 + _JITTER)  # noqa: S311  it keeps no secret
