"""A wanted order -> the fewest changes of priority that give it; the jobs together keep the priorities that they have.

The job of rank i gets the i-th highest of the priorities that the jobs have without us (their *natural* ones). What
moves by age alone is no reason for a change: a job keeps what it has as long as that is in order and near its target.

All is reckoned in *levels*: a priority plus the number of ranks above at which a strict step down is needed, because
Slurm starts the lower id first among equal priorities. In levels an order is right if they do not rise with the rank.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

# Since Slurm 17.11; one more is refused.
NICE_LIMIT = 2_147_483_645
# Slurm's own scheduling gives no waiting job less; 0 means held.
LOWEST = 1
# Nobody is lowered further: one that stands at the lowest tells no longer what it would have without us.
_LOWERED_TO = LOWEST + 1
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

    At most `most` of them: where the whole order takes more, as many places from the front as can be had for that, by
    exchange within the jobs. `others` are the priorities of other waiting jobs. Equal priorities are parted downwards;
    where that takes too many changes, upwards, if no other job stands where somebody would be lifted to, or below.
    """
    down = _downwards(wanted)
    whole = _changes(wanted, _whole(wanted, down))
    if most is None or len(whole) <= most:
        return _down_first(whole)
    up = _upwards(wanted)
    if _lifts_over(wanted, up, sorted(others)):
        return _in_part(whole, most)
    lifted = _changes(wanted, _whole(wanted, up))
    return _down_first(lifted if len(lifted) <= most else _front(wanted, up, most) or _in_part(lifted, most))


def _down_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes so that, wherever they break off, no more jobs stand high than did before."""
    return tuple(sorted(changes, key=lambda each: each.priority > each.job.priority))


def _in_part(changes: Sequence[Change], most: int) -> tuple[Change, ...]:
    """Return so many changes of the whole order: those down from the last one, and those up when no other is left."""
    downs = [each for each in changes if each.priority < each.job.priority]
    return tuple(downs[-most:] or changes[:most])


def _changes(jobs: Sequence[Placed], priorities: Sequence[int]) -> list[Change]:
    return [Change(job, to) for job, to in zip(jobs, priorities, strict=True) if to != job.priority]


# --- where each rank belongs


@dataclass(frozen=True, slots=True)
class _Aim:
    """By rank: the steps down above it, its target, and between which levels a job may keep what it has."""

    steps: Sequence[int]
    targets: Sequence[int]
    lowest: Sequence[int]
    highest: Sequence[int]


def _downwards(wanted: Sequence[Placed]) -> _Aim:
    """Return the natural priorities, the highest first; equal ones are parted downwards."""
    steps, natural, drift = _steps(wanted), _natural(wanted), slack(wanted)
    targets = list(accumulate((each + step for each, step in zip(natural, steps, strict=True)), min))
    return _Aim(steps, targets, [each - drift for each in targets], [each + drift for each in targets])


def _upwards(wanted: Sequence[Placed]) -> _Aim:
    """Return the same, but equal ones are parted upwards; who has been parted downwards may stay so."""
    down, drift = _downwards(wanted), slack(wanted)
    levels = [each + step for each, step in zip(_natural(wanted), down.steps, strict=True)]
    targets = list(accumulate(reversed(levels), max))[::-1]
    return _Aim(down.steps, targets, down.lowest, [each + drift for each in targets])


def _natural(wanted: Sequence[Placed]) -> list[int]:
    return sorted((job.natural for job in wanted), reverse=True)


def _steps(wanted: Sequence[Placed]) -> list[int]:
    """Return for each rank how many strict steps down there are above it."""
    needed = [int(job.number < before.number) for before, job in pairwise(wanted)]
    return list(accumulate(needed, initial=0))[: len(wanted)]


def _lifts_over(wanted: Sequence[Placed], aim: _Aim, others: Sequence[int]) -> bool:
    """Tell whether another job stands where somebody would be lifted to, or where he is lifted from, or between."""
    spans = zip(_natural(wanted), aim.targets, aim.steps, strict=True)
    lifted = ((low, level - step) for low, level, step in spans if level - step > low)
    return any(bisect_left(others, low) < bisect_right(others, high) for low, high in lifted)


# --- the whole order


def _whole(wanted: Sequence[Placed], aim: _Aim) -> list[int]:
    """Return each job's new priority, by rank."""
    levels = [job.priority + step for job, step in zip(wanted, aim.steps, strict=False)]
    filled = _fill(aim.targets[: len(levels)], levels, _keepers(levels, aim))
    new = (level - step for level, step in zip(filled, aim.steps, strict=False))
    return [max(min(job.natural, _LOWERED_TO), LOWEST, to) for job, to in zip(wanted, new, strict=False)]


def _keepers(levels: Sequence[int], aim: _Aim) -> list[int]:
    """Return the ranks of the most jobs that can all keep what they have: near their targets, and not rising."""
    near = [rank for rank, level in enumerate(levels) if aim.lowest[rank] <= level <= aim.highest[rank]]
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


def _front(wanted: Sequence[Placed], aim: _Aim, most: int) -> list[Change]:
    """Return the changes that put ranks from the front in order, as many as `most` changes suffice for."""
    most_ranks = _ranks_within(wanted, most)
    # A front may take more than was reckoned.
    tries = [most_ranks, *(most_ranks * part // 8 for part in range(7, 1, -1)), *range(min(8, most_ranks), 0, -1)]
    fronts = (_front_of(wanted, ranks, aim) for ranks in dict.fromkeys(tries) if ranks)
    return next((changes for changes in fronts if len(changes) <= most), [])


def _ranks_within(wanted: Sequence[Placed], most: int) -> int:
    """Return the most ranks from the front that `most` changes fill, if who is out of place must be moved."""
    place = {job.name: at for at, job in enumerate(in_place(wanted))}
    seen: set[int] = set()
    inside = settled = best = 0
    for rank, job in enumerate(wanted):
        seen.add(place[job.name])
        inside += int(place[job.name] <= rank) + int(rank in seen and place[job.name] != rank)
        settled += int(place[job.name] == rank)
        if (rank + 1 - settled) + (rank + 1 - inside) <= most:
            best = rank + 1
    return best


def _front_of(wanted: Sequence[Placed], ranks: int, aim: _Aim) -> list[Change]:
    """Return the changes for this front, and for those whom it displaces: they take what the front gives up."""
    front, place = wanted[:ranks], {job.name: at for at, job in enumerate(in_place(wanted))}
    given = [job.priority for job in in_place([job for job in front if place[job.name] >= ranks])]
    displaced = [job for job in wanted[ranks:] if place[job.name] < ranks]
    rest = [job for job in wanted[ranks:] if place[job.name] >= ranks]
    behind = [replace(job, priority=priority) for job, priority in zip(displaced, given, strict=True)] + rest
    return _changes(front, _whole(front, _before(aim, front, behind))) + _changes(displaced, given)


def _before(aim: _Aim, front: Sequence[Placed], behind: Sequence[Placed]) -> _Aim:
    """Return the aim by which nobody of the front keeps what he has who would start after one of those behind."""
    if not behind:
        return aim
    first = in_place(behind)[0]
    least = first.priority + int(front[-1].number > first.number) + aim.steps[len(front) - 1]
    return replace(aim, lowest=[max(each, least) for each in aim.lowest])
