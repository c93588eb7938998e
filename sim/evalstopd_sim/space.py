"""The GPUs of the emulated cluster: counted as slots, or placed on nodes."""

from collections.abc import Sequence
from typing import Protocol

from evalstopd_sim.fill import Changes, fill
from evalstopd_sim.options import ClusterOptions, HeadOfLine
from evalstopd_sim.ranks import Running, Waiting
from evalstopd_sim.simjob import Entry, SimJob


class Space(Protocol):
    """Who holds which GPUs, and who could."""

    def changes(self, waiting: Waiting, running: Running, now_s: float) -> Changes:
        """Return who has to yield and who starts, in rank order."""

    def take(self, job: SimJob) -> None:
        """Give the job its GPUs."""

    def give_back(self, job: SimJob) -> None:
        """Take the job's GPUs back."""


def space(options: ClusterOptions) -> Space:
    """Return the cluster's GPUs, all free."""
    return Nodes(options) if options.gpus_per_node else Slots(options)


class Slots:
    """GPUs as a number: any free ones will do."""

    __slots__ = ("_head", "free")

    def __init__(self, options: ClusterOptions) -> None:
        self.free = options.gpus
        self._head = options.head_of_line

    def changes(self, waiting: Waiting, running: Running, now_s: float) -> Changes:
        """Return who has to yield and who starts, in rank order."""
        return fill(waiting, running, self.free, now_s, self._head)

    def take(self, job: SimJob) -> None:
        """Give the job its GPUs."""
        self.free -= job.gpus

    def give_back(self, job: SimJob) -> None:
        """Take the job's GPUs back."""
        self.free += job.gpus


class Nodes:
    """GPUs on nodes of one size: a job sits on the fullest node it fits on.

    A larger job takes whole nodes and a rest. Running jobs do not move. Placement is no sum, so
    each settling walks over all jobs in rank order.
    """

    __slots__ = ("_chosen", "_free", "_head", "_size")

    def __init__(self, options: ClusterOptions) -> None:
        self._size = options.gpus_per_node or options.gpus
        self._free = [self._size] * (options.gpus // self._size)
        self._head = options.head_of_line
        self._chosen: dict[str, tuple[tuple[int, int], ...]] = {}

    def changes(self, waiting: Waiting, running: Running, now_s: float) -> Changes:
        """Return who has to yield and who starts, in rank order."""
        if not waiting:
            return Changes([], [])
        walk = _Walk(self._size, list(self._free), list(running.worst_first(now_s)), self._head)
        self._chosen = walk.chosen
        return walk.go(sorted([*waiting.entries(), *walk.ranked]))

    def take(self, job: SimJob) -> None:
        """Give the job the GPUs that were chosen for it."""
        job.nodes = self._chosen.pop(job.truth.job_id)
        _add(self._free, job.nodes, -1)

    def give_back(self, job: SimJob) -> None:
        """Take the job's GPUs back."""
        _add(self._free, job.nodes, 1)


class _Walk:
    """One pass in rank order. `promised` is what better-ranked jobs left; `idle` what nobody holds either."""

    def __init__(self, size: int, idle: list[int], ranked: list[Entry], head: HeadOfLine) -> None:
        self.ranked = ranked
        self.chosen: dict[str, tuple[tuple[int, int], ...]] = {}
        self._size = size
        self._idle = idle
        self._promised = list(idle)
        for entry in ranked:
            _add(self._promised, entry[3].nodes, 1)
        self._open = True
        self._head = head

    def go(self, entries: list[Entry]) -> Changes:
        changes = Changes([], [])
        for entry in entries:
            job: SimJob = entry[3]
            if job.running:
                self._keep_or_yield(job, changes)
            elif self._open:
                self._start_or_wait(entry, changes)
        return changes

    def _keep_or_yield(self, job: SimJob, changes: Changes) -> None:
        if all(self._promised[node] >= count for node, count in job.nodes):
            _add(self._promised, job.nodes, -1)
        else:
            _add(self._idle, job.nodes, 1)
            changes.yields.append(job)

    def _start_or_wait(self, entry: Entry, changes: Changes) -> None:
        job: SimJob = entry[3]
        place = _choose(self._idle, job.gpus, self._size) or self._choose_from_worse(entry)
        if place is None:
            self._open = self._head is not HeadOfLine.STRICT
            return
        _add(self._idle, place, -1)
        _add(self._promised, place, -1)
        self.chosen[job.truth.job_id] = place
        changes.starts.append(job)

    def _choose_from_worse(self, entry: Entry) -> tuple[tuple[int, int], ...] | None:
        """Return the place that a job gets if worse-ranked ones yield, the worst first, until it fits."""
        free = list(self._idle)
        for worse in self.ranked:
            if worse < entry:
                return None
            _add(free, worse[3].nodes, 1)
            place = _choose(free, entry[3].gpus, self._size)
            if place is not None:
                return place
        return None


def _choose(free: Sequence[int], gpus: int, size: int) -> tuple[tuple[int, int], ...] | None:
    whole, rest = divmod(gpus, size)
    full = [node for node, count in enumerate(free) if count == size][:whole]
    if len(full) < whole:
        return None
    parts = [(count, node) for node, count in enumerate(free) if count >= rest and node not in full] if rest else []
    if rest and not parts:
        return None
    tail = ((min(parts)[1], rest),) if rest else ()
    return (*((node, size) for node in full), *tail)


def _add(free: list[int], nodes: Sequence[tuple[int, int]], sign: int) -> None:
    for node, count in nodes:
        free[node] += sign * count
