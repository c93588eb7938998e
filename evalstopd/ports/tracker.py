"""The tracker's runs: read, found, written to, and who gets in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.binding import RunFacts
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which metric of which run to read, and which other one beside it for the alarm alone (empty: none).

    Without a metric the run's facts alone are read. `items` is the number of items behind each of its evals, where the
    site knows it and the run may not say (0: no). With `fresh` the facts must be read now; else what stood still for
    long may be remembered, but for whether the run was deleted. `dataset` is the one whose points are wanted where the
    metric has those of several (core/datasets); `apart` tells that they were told apart from others when last read.
    """

    run_id: str
    metric: str
    proxy: str = ""
    items: int = 0
    fresh: bool = False
    dataset: str = ""
    apart: bool = False


@dataclass(frozen=True, slots=True)
class RunReading:
    """One run as read: its facts and every point of the metric asked for (life and arrival not set).

    Points have their standard error, as far as what is logged beside the metric tells it (core/logged). `proxy`
    has the points of the query's proxy; none where they could not be read. Of several datasets under the metric's name
    the points are those of `dataset` alone; `untold` says why they could not be told apart, and then all are here.
    """

    facts: RunFacts
    points: tuple[Point, ...]
    proxy: tuple[Point, ...] = ()
    dataset: str = ""
    untold: str = ""


class MetricsSource(Protocol):
    """The tracker, for reading: one run's trouble never costs another run its reading."""

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Return for each query its reading, or why there is none.

        Rejected: unknown run; PastCaps: more than one run may cost, which costs no other; else Unavailable.
        """


class RunFinder(Protocol):
    """The tracker, asked which runs call themselves a job's."""

    def naming(self, cluster: str, raw_ids: Sequence[int]) -> Mapping[int, tuple[RunFacts, ...] | EvalstopError]:
        """Return for each job the running runs whose tags `slurm.job_id` and `slurm.cluster` name it.

        Those tags may be anybody's: they prove nothing. One small call a job; PastCaps where a job has more runs
        than can be looked at, else Rejected or Unavailable: that job's trouble alone.
        """


class Gate(Protocol):
    """The tracker's door."""

    def admits_strangers(self) -> bool:
        """Tell whether it answers who does not log in. Asked seldom. Raises Unavailable until it can be learned."""


class RunList(Protocol):
    """The tracker's runs of the past, for replay."""

    def runs_of(self, experiment: str, most: int) -> tuple[RunFacts, ...]:
        """Return the facts of an experiment's runs (its name or id), the newest first, `most` at most.

        Deleted runs are left out. Raises Rejected for an unknown experiment or without the right, else Unavailable.
        """


class RunWriter(Protocol):
    """The tracker, for writing; each write is read back. Raises Unavailable or Rejected."""

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags on a run."""

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING; return the status it has afterwards."""
