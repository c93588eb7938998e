"""Jobs kept in rank order, so that an event costs what it changes and not what there is."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from evalstopd_sim.simjob import Entry, SimJob


class Waiting:
    """The jobs that wait, by the number of GPUs they ask for: within one size only the first can matter."""

    __slots__ = ("_sizes",)

    def __init__(self) -> None:
        self._sizes: dict[int, list[Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def add(self, job: SimJob) -> None:
        """Put a job in its place."""
        held = self._sizes.get(job.gpus)
        if held is None:
            self._sizes[job.gpus] = [job.entry]
        else:
            insort(held, job.entry)

    def remove(self, job: SimJob) -> None:
        """Take a job out."""
        held = self._sizes[job.gpus]
        if len(held) == 1:
            del self._sizes[job.gpus]
        else:
            del held[bisect_left(held, job.entry)]

    def only(self) -> Entry | None:
        """Return the job that waits alone; None if there are several or none."""
        if len(self._sizes) != 1:
            return None
        (held,) = self._sizes.values()
        return held[0] if len(held) == 1 else None

    def heads(self, after: Entry | None) -> list[Entry]:
        """Return the best-ranked job of each size that ranks after `after`."""
        if after is None:
            return [held[0] for held in self._sizes.values()]
        return [held[bisect_right(held, after)] for held in self._sizes.values() if after < held[-1]]

    def entries(self) -> list[Entry]:
        """Return all of them in rank order."""
        return sorted(entry for held in self._sizes.values() for entry in held)


class Running:
    """The jobs that run, one sorted list for each drift: jobs whose keys move alike keep their order.

    A list holds each key as it would have been at time 0, so nothing has to be moved as time goes by.
    """

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[float, list[Entry]] = {}

    def add(self, job: SimJob, since_s: float) -> None:
        """Put a job in its place; its key moves along its trend from `since_s` on."""
        drift = job.trend.drift_per_s
        job.entry = _moved(job.entry, -drift * since_s)
        held = self._lines.get(drift)
        if held is None:
            self._lines[drift] = [job.entry]
        else:
            insort(held, job.entry)

    def remove(self, job: SimJob) -> None:
        """Take a job out."""
        held = self._lines[job.trend.drift_per_s]
        del held[bisect_left(held, job.entry)]

    def worst_first(self, now_s: float) -> Iterator[Entry]:
        """Yield all running jobs with the keys they have now, the lowest in rank first."""
        lines = [(held, drift * now_s) for drift, held in self._lines.items() if held]
        fronts = [(_moved(held[-1], shift), held, len(held) - 1, shift) for held, shift in lines]
        while fronts:
            front = max(fronts)
            worst, held, place, shift = front
            yield worst
            fronts.remove(front)
            if place:
                fronts.append((_moved(held[place - 1], shift), held, place - 1, shift))

    def tail(self, now_s: float) -> "Tail":
        """Return the same, to be looked up as far as needed."""
        return Tail(self.worst_first(now_s))


class Tail:
    """The lower end of the running jobs, kept as far as somebody asked."""

    __slots__ = ("_rest", "_seen")

    def __init__(self, rest: Iterator[Entry]) -> None:
        self._rest = rest
        self._seen: list[Entry] = []

    def get(self, place: int) -> Entry | None:
        """Return the job at this place from the end; None beyond the best-ranked."""
        seen = self._seen
        while len(seen) <= place:
            worse = next(self._rest, None)
            if worse is None:
                return None
            seen.append(worse)
        return seen[place]


def _moved(entry: Entry, shift: float) -> Entry:
    if not shift:
        return entry
    key, submit_s, job_id, job = entry
    moved = (key[0] + shift,) if len(key) == 1 else (*key[:-1], key[-1] + shift)
    return (moved, submit_s, job_id, job)
