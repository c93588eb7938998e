"""What a base policy is: a key that orders jobs, or, for elastic ones, an allocation of GPUs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

from evalstopd.core.model import JobView


@dataclass(frozen=True, slots=True)
class Allocation:
    """GPUs given to each job, by job id; a job that is not named gets none."""

    gpus: Mapping[str, int]


class Trend(NamedTuple):
    """How a running job's key moves: its last number by `drift_per_s`, for `holds_s` more seconds of running.

    With it a scheduler keeps its jobs sorted and asks again only where something changed, instead of asking
    for every job at every event. `jumps` tells whether the key is then another one than the drift led to, so
    that places may change.
    """

    drift_per_s: float = 0.0
    holds_s: float = inf
    jumps: bool = False


STEADY = Trend()
# Attained time is a sum of differences: it may end this many seconds short of a moment that it has reached.
ROUNDING_S = 1e-6


class Policy(Protocol):
    """A ranking of waiting (and, if preemptive, running) jobs; the lowest key goes first."""

    @property
    def spec(self) -> str:
        """Return the policy with its parameters as text."""

    @property
    def preemptive(self) -> bool:
        """Tell whether running jobs are ranked too and may have to yield."""

    @property
    def sees_evals(self) -> bool:
        """Tell whether a job's key can change when an eval arrives."""

    @property
    def sees_running(self) -> bool:
        """Tell whether a job's key can change by its start alone."""

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the job's place; equal keys are broken by submit time, then by id.

        While a job waits its key stays as it is.
        """

    def trend(self, job: JobView) -> Trend:
        """Return how the key moves from here on while the job runs."""


class ElasticPolicy(Protocol):
    """A policy that decides how many GPUs each job gets; runs in the simulator only."""

    @property
    def spec(self) -> str:
        """Return the policy with its parameters as text."""

    @property
    def round_s(self) -> float:
        """Return the time between two allocations in seconds."""

    def allocate(self, jobs: Sequence[JobView], gpus: int, now_s: float) -> Allocation:
        """Divide `gpus` among the jobs that are here."""


def rank(policy: Policy, jobs: Iterable[JobView], now_s: float) -> tuple[JobView, ...]:
    """Return the jobs in the policy's order; total and deterministic, whatever order they came in."""
    return tuple(sorted(jobs, key=lambda job: (policy.key(job, now_s), job.submitted_s, job.job_id)))
