"""Estimates judged on jobs of the past, in the order of time: each from what had ended before it was submitted."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from evalstopd.core.estimates import Asked, History, PastLife, is_own_end, use_of


@dataclass(frozen=True, slots=True)
class Judged:
    """A life that ended of itself: what it took, what its limit said, what the estimate at its submission was."""

    user: str
    account: str
    name: str
    actual_s: float
    limit_s: float
    estimate_s: float
    of: str

    @property
    def off(self) -> float:
        """Return ln(estimate / actual): 0 is right, positive too long."""
        return log(self.estimate_s / self.actual_s)

    @property
    def limit_off(self) -> float:
        """Return the same for the limit."""
        return log(self.limit_s / self.actual_s)


@dataclass(frozen=True, slots=True)
class Trial:
    """What was judged, by submission, and how many lives could not be, by why."""

    judged: tuple[Judged, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def judge(lives: Iterable[PastLife]) -> Trial:
    """Estimate each life by those that ended before it was submitted, and compare."""
    ordered = sorted(lives, key=lambda each: (each.submitted_s, each.ended_s, each.user, each.name))
    known, running = History(), Running()
    judged: list[Judged] = []
    left_out: Counter[str] = Counter()
    for life in ordered:
        for past in running.over(life.submitted_s):
            known.add(past)
        known.read_until(life.submitted_s)
        running.add(life)
        why = _why_not(life)
        if why:
            left_out[why] += 1
        else:
            judged.append(_judged(known, life))
    return Trial(tuple(judged), dict(sorted(left_out.items())))


@dataclass(slots=True)
class Running:
    """Lives that have been submitted, by their end."""

    heap: list[tuple[float, int, PastLife]] = field(default_factory=list)
    count: int = 0

    def add(self, life: PastLife) -> None:
        """Take a life in."""
        self.count += 1
        heapq.heappush(self.heap, (life.ended_s, self.count, life))

    def over(self, now_s: float) -> Iterator[PastLife]:
        """Yield, in the order of their ends, the lives that ended before a moment."""
        while self.heap and self.heap[0][0] < now_s:
            yield heapq.heappop(self.heap)[2]


def _judged(known: History, life: PastLife) -> Judged:
    limit_s = float(life.limit_s or 0.0)
    found = known.estimate(Asked(life.user, life.account, life.name, limit_s))
    length_s, of = (found.length_s, found.of if found.jobs else "the limit") if found is not None else (limit_s, "")
    # A job that timed out may have run a little past its limit: neither figure is to blame for that.
    actual_s = min(life.elapsed_s, limit_s)
    return Judged(life.user, life.account, life.name, actual_s, limit_s, length_s, of)


def _why_not(life: PastLife) -> str:
    """Return why a life's length cannot judge an estimate; nothing where it can."""
    if not life.limit_s:
        return "without a time limit"
    if use_of(life) is None:
        return "failed within a minute, or never ran"
    return "" if is_own_end(life) else "cut short (cancelled, preempted, requeued, node lost)"


def by_name(judged: Sequence[Judged]) -> dict[tuple[str, str, str], list[Judged]]:
    """Return what was judged by user, account and name, the largest group first."""
    groups: dict[tuple[str, str, str], list[Judged]] = {}
    for each in judged:
        groups.setdefault((each.user, each.account, each.name), []).append(each)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))
