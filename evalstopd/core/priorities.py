"""A wanted order -> the fewest changes of priority that give it; the jobs together keep the priorities that they have.

The job of rank i gets the i-th highest of the priorities that the jobs have without us (their *natural* ones). What
moves by age alone is no reason for a change: a job keeps what it has as long as that is in order and near its target.

All is reckoned in *levels*: a priority plus the number of ranks above at which a strict step down is needed, because
Slurm starts the lower id first among equal priorities. In levels an order is right if they do not rise with the rank.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

# Since Slurm 17.11; one more is refused.
NICE_LIMIT = 2_147_483_645
# Slurm's own scheduling gives no waiting job less; 0 means held.
LOWEST = 1
# A job may stay off its target by this share of the distance between the highest and the lowest natural priority.
_DRIFT_SHARE = 50


@dataclass(frozen=True, slots=True)
class Placed:
    """A waiting job as it stands: its priority now, what it would be without us, and the number that breaks ties."""

    name: str
    number: int
    priority: int
    natural: int


@dataclass(frozen=True, slots=True)
class Change:
    """The priority that one job is to have."""

    job: Placed
    priority: int


def in_place(jobs: Sequence[Placed]) -> list[Placed]:
    """Return the jobs in the order in which Slurm would start them now."""
    return sorted(jobs, key=lambda job: (-job.priority, job.number))


def slack(jobs: Sequence[Placed]) -> int:
    """Return how far a job may stay off its target."""
    natural = [job.natural for job in jobs]
    return (max(natural) - min(natural)) // _DRIFT_SHARE if natural else 0


def arrange(wanted: Sequence[Placed], others: Sequence[int] = (), most: int | None = None) -> tuple[Change, ...]:
    """Return the changes that bring `wanted`, the first to start in front, into their order; those down come first.

    At most `most` of them: where the whole order takes more, as many places from the front as can be had for that,
    by exchange within the jobs. `others` are the priorities of other waiting jobs: to part equal priorities nobody is
    lifted to or over one of them.
    """
    whole = _changes(wanted, _whole(wanted))
    if most is None or len(whole) <= most:
        return _downwards_first(whole)
    front = _front(wanted, sorted(others), most)
    return _downwards_first(front or _from_below(whole, most))


def _downwards_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes so that, wherever they break off, no more jobs stand high than did before."""
    return tuple(sorted(changes, key=lambda each: each.priority > each.job.priority))


def _from_below(changes: Sequence[Change], most: int) -> Sequence[Change]:
    """Return what only takes jobs down, from the last one: it costs no other job anything."""
    return [each for each in changes if each.priority < each.job.priority][-most:]


def _changes(jobs: Sequence[Placed], priorities: Sequence[int]) -> list[Change]:
    return [Change(job, to) for job, to in zip(jobs, priorities, strict=True) if to != job.priority]


# --- the whole order


def _whole(wanted: Sequence[Placed]) -> list[int]:
    """Return each job's new priority, by rank, for the whole order."""
    steps = _steps(wanted)
    targets = _targets(wanted, steps)
    levels = [job.priority + step for job, step in zip(wanted, steps, strict=True)]
    filled = _fill(targets, levels, _keepers(targets, levels, slack(wanted)))
    return [max(LOWEST, level - step) for level, step in zip(filled, steps, strict=True)]


def _steps(wanted: Sequence[Placed]) -> list[int]:
    """Return for each rank how many strict steps down there are above it."""
    needed = [int(job.number < before.number) for before, job in pairwise(wanted)]
    return list(accumulate(needed, initial=0))[: len(wanted)]


def _targets(wanted: Sequence[Placed], steps: Sequence[int]) -> list[int]:
    """Return each rank's target level: the natural priorities, the highest first; equal ones are parted downwards."""
    natural = sorted((job.natural for job in wanted), reverse=True)
    return list(accumulate((each + step for each, step in zip(natural, steps, strict=True)), min))


def _keepers(targets: Sequence[int], levels: Sequence[int], drift: int) -> list[int]:
    """Return the ranks of the most jobs that can all keep what they have: near their targets, and not rising."""
    near = [rank for rank, level in enumerate(levels) if abs(level - targets[rank]) <= drift]
    return [near[at] for at in longest_falling([levels[rank] for rank in near])]


def longest_falling(levels: Sequence[int]) -> list[int]:
    """Return the places of a longest subsequence that never rises."""
    ends: list[int] = []
    places: list[int] = []
    before: list[int | None] = []
    for place, level in enumerate(levels):
        length = bisect_right(ends, -level)
        before.append(places[length - 1] if length else None)
        ends[length : length + 1] = [-level]
        places[length : length + 1] = [place]
    return list(_back(places[-1] if places else None, before))[::-1]


def _back(place: int | None, before: Sequence[int | None]) -> Iterator[int]:
    while place is not None:
        yield place
        place = before[place]


def _fill(targets: Sequence[int], levels: Sequence[int], keepers: Sequence[int]) -> list[int]:
    """Return the levels: keepers keep theirs, the others get their targets, no higher or lower than those beside."""
    filled = list(targets)
    bounds = [None, *keepers, None]
    for above, below in pairwise(bounds):
        first, last = -1 if above is None else above, len(filled) if below is None else below
        for rank in range(first + 1, last):
            least = filled[rank] if below is None else max(filled[rank], levels[below])
            filled[rank] = least if above is None else min(least, levels[above])
        if below is not None:
            filled[below] = levels[below]
    return filled


# --- as much of it as so many changes give


def _front(wanted: Sequence[Placed], others: Sequence[int], most: int) -> list[Change]:
    """Return the changes for as many ranks from the front as `most` changes put in order; none where none can be."""
    ranks = _ranks_within(wanted, most)
    while ranks:
        changes = _front_of(wanted, ranks, others)
        if changes is not None and len(changes) <= most:
            return changes
        ranks //= 2
    return []


def _ranks_within(wanted: Sequence[Placed], most: int) -> int:
    """Return the most ranks from the front that cost no more changes, as if no job could keep its place by luck."""
    place = {job.name: at for at, job in enumerate(in_place(wanted))}
    inside, best = 0, 0
    seen: set[int] = set()
    settled = 0
    for rank, job in enumerate(wanted):
        seen.add(place[job.name])
        inside += int(place[job.name] <= rank) + int(rank in seen and place[job.name] != rank)
        settled += int(place[job.name] == rank)
        if (rank + 1 - settled) + (rank + 1 - inside) <= most:
            best = rank + 1
    return best


def _front_of(wanted: Sequence[Placed], ranks: int, others: Sequence[int]) -> list[Change] | None:
    """Return the changes for this front, and for those whom it displaces; None where it would lift over others."""
    front, place = wanted[:ranks], {job.name: at for at, job in enumerate(in_place(wanted))}
    given = [job.priority for job in in_place([job for job in front if place[job.name] >= ranks])]
    displaced = [job for job in wanted[ranks:] if place[job.name] < ranks]
    rest = [job for job in wanted[ranks:] if place[job.name] >= ranks]
    behind = [(job.priority, -job.number) for job in rest]
    behind += [(priority, -job.number) for priority, job in zip(given, displaced, strict=True)]
    priorities = _above(wanted, ranks, max(behind, default=(0, 0)))
    natural = sorted((job.natural for job in wanted), reverse=True)
    if any(_lifts_over(others, low, high) for low, high in zip(natural, priorities, strict=False)):
        return None
    return _changes(front, priorities) + _changes(displaced, given)


def _above(wanted: Sequence[Placed], ranks: int, behind: tuple[int, int]) -> list[int]:
    """Return the priorities of the front, all of it before `behind`: a priority and minus the id of who has it."""
    front = wanted[:ranks]
    steps = _steps(wanted)[:ranks]
    targets = _targets(wanted, _steps(wanted))[:ranks]
    levels = [job.priority + step for job, step in zip(front, steps, strict=True)]
    filled = _fill(targets, levels, _keepers(targets, levels, slack(wanted)))
    least = behind[0] + int(front[-1].number > -behind[1]) + steps[-1]
    return [max(level, least) - step for level, step in zip(filled, steps, strict=True)]


def _lifts_over(others: Sequence[int], low: int, high: int) -> bool:
    """Tell whether another job stands at `low`, at `high` or between, where `high` is the higher."""
    return high > low and bisect_left(others, low) < bisect_right(others, high)
