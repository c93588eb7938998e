"""Jobs kept in rank order, so that an event costs what it changes and not what there is."""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from itertools import count, takewhile

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
        del held[bisect_left(held, job.entry)]
        if not held:
            del self._sizes[job.gpus]

    def heads(self, after: Entry | None) -> list[Entry]:
        """Return the best-ranked job of each size that ranks after `after`."""
        if after is None:
            return [held[0] for held in self._sizes.values()]
        places = [(held, bisect_right(held, after)) for held in self._sizes.values()]
        return [held[place] for held, place in places if place < len(held)]

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
        if drift:
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

    def key(self, job: SimJob, now_s: float) -> tuple[float, ...]:
        """Return the key that a job has now."""
        return _moved(job.entry, job.trend.drift_per_s * now_s)[0]

    def tail(self, now_s: float) -> "Tail":
        """Return the running jobs with the keys they have now, the lowest in rank first, looked up as needed."""
        return Tail([_Line(held, len(held) - 1, drift * now_s) for drift, held in self._lines.items() if held])

    def worst_first(self, now_s: float) -> list[Entry]:
        """Return all running jobs with the keys they have now, the lowest in rank first."""
        tail = self.tail(now_s)
        return list(takewhile(lambda entry: entry is not None, map(tail.get, count())))  # type: ignore[arg-type]


@dataclass(slots=True)
class _Line:
    """One sorted list, read from its end: the next place, and how far its keys have moved."""

    held: list[Entry]
    place: int
    shift: float

    def front(self) -> Entry:
        entry = self.held[self.place]
        return _moved(entry, self.shift) if self.shift else entry


class Tail:
    """The lower end of the running jobs, merged from their lines as far as somebody asked."""

    __slots__ = ("_fronts", "_seen")

    def __init__(self, lines: list[_Line]) -> None:
        self._fronts = [(line.front(), line) for line in lines]
        self._seen: list[Entry] = []

    def get(self, place: int) -> Entry | None:
        """Return the job at this place from the end; None beyond the best-ranked."""
        seen = self._seen
        while len(seen) <= place:
            if not self._fronts:
                return None
            self._take()
        return seen[place]

    def _take(self) -> None:
        fronts = self._fronts
        worst = 0 if len(fronts) == 1 or fronts[1][0] < fronts[0][0] else 1
        if len(fronts) > 2:
            worst = max(range(len(fronts)), key=lambda place: fronts[place][0])
        entry, line = fronts[worst]
        self._seen.append(entry)
        line.place -= 1
        if line.place < 0:
            del fronts[worst]
        else:
            fronts[worst] = (line.front(), line)


def _moved(entry: Entry, shift: float) -> Entry:
    key, submit_s, job_id, job = entry
    if len(key) == 1:
        return ((key[0] + shift,), submit_s, job_id, job)
    return ((*key[:-1], key[-1] + shift), submit_s, job_id, job)
