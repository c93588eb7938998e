"""Tracker and gate that are made when they are first asked: what never asks them needs none of their settings."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol

from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError
from evalstopd.ports import Gate, MetricsSource, RunFinder, RunQuery, RunReading, RunWriter


class Tracker(MetricsSource, RunFinder, RunWriter, Protocol):
    """All that the loop wants of a tracker."""


class LateTracker:
    """Stands for the tracker that `make` returns; what making it raises is raised where it is asked."""

    def __init__(self, make: Callable[[], Tracker]) -> None:
        self._made = cache(make)

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Return for each query its reading, or why there is none."""
        return self._made().read(queries)

    def naming(self, cluster: str, raw_ids: Sequence[int]) -> Mapping[int, tuple[RunFacts, ...] | EvalstopError]:
        """Return for each job the running runs whose tags name it."""
        return self._made().naming(cluster, raw_ids)

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags on a run."""
        self._made().tag(run_id, tags)

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING."""
        return self._made().mark_killed(run_id)


class LateGate:
    """Stands for the gate that `make` returns; what making it raises is raised where it is asked."""

    def __init__(self, make: Callable[[], Gate]) -> None:
        self._made = cache(make)

    def admits_strangers(self) -> bool:
        """Tell whether the tracker answers who does not log in."""
        return self._made().admits_strangers()
