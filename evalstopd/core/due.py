"""When a job's run is worth reading again, by our own arrival times (a client's clock proves nothing)."""

from dataclasses import replace
from itertools import pairwise
from statistics import median

from evalstopd.core.watch import Reads

_EAGER_S = 600.0
LONGEST_WAIT_S = 900.0
_MEMORY = 9


def after_read(reads: Reads, now_s: float, *, arrived: int, tick_s: float, started_s: float) -> Reads:
    """Return the schedule after a good read at `now_s` that brought so many new evals. Times in seconds.

    Until two arrivals are known: each tick during the first 10 minutes of the job, then doubling up to 10
    minutes. After that: last arrival + max(tick, 0.8 x the median gap), at most 15 minutes; an overdue
    eval is asked for ever more rarely, up to the same limit. Several evals at once, as after an outage, count as
    having come in equal steps since the last one: or else the outage would be taken for the job's own pace.
    A read that came before its time (while a stop is open each pass reads) and brought nothing changes nothing: else
    the job, once given up, would not be read for a quarter of an hour.
    """
    if not arrived and is_waiting(reads, now_s):
        return replace(reads, good_s=now_s)
    arrivals = (*reads.arrivals, *_moments(reads, now_s, arrived))[-_MEMORY:]
    empty = 0 if arrived else reads.empty + 1
    wait = _wait(arrivals, empty, now_s - started_s, tick_s)
    return Reads(arrivals, empty, now_s + wait, now_s)


def is_waiting(reads: Reads, now_s: float) -> bool:
    """Tell whether its time is still to come; one that is further off than any wait is by a clock since put back."""
    return now_s < reads.due_s <= now_s + LONGEST_WAIT_S


def worth_a_look(age_s: float, now_s: float, tick_s: float) -> bool:
    """Tell whether to look in this pass for the run of a job that runs for `age_s` and has none yet.

    Each tick during its first 10 minutes, then every eighth of its age, at most every 15 minutes: most jobs without
    a run never get one.
    """
    if age_s < _EAGER_S:
        return True
    period = max(tick_s, min(age_s / 8.0, LONGEST_WAIT_S))
    return now_s // period != (now_s - tick_s) // period


def _moments(reads: Reads, now_s: float, arrived: int) -> tuple[float, ...]:
    if arrived < 2 or not reads.arrivals:
        return (now_s,) * min(arrived, 1)
    step_s = (now_s - reads.arrivals[-1]) / arrived
    return tuple(now_s - before * step_s for before in reversed(range(min(arrived, _MEMORY))))


def _wait(arrivals: tuple[float, ...], empty: int, age_s: float, tick_s: float) -> float:
    if len(arrivals) < 2:
        return tick_s if age_s < _EAGER_S else min(tick_s * 2.0 ** min(empty, 20), _EAGER_S)
    gap = median(later - earlier for earlier, later in pairwise(arrivals))
    first = max(tick_s, 0.8 * gap)
    again = max(tick_s, 0.1 * gap) * 2.0 ** min(max(empty - 1, 0), 20)
    return min(first if empty == 0 else again, LONGEST_WAIT_S)
