"""What a base policy is: a key that orders jobs, or, for elastic ones, an allocation of GPUs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.model import JobView


@dataclass(frozen=True, slots=True)
class Allocation:
    """GPUs given to each job, by job id; a job that is not named gets none."""

    gpus: Mapping[str, int]


class Policy(Protocol):
    """A ranking of waiting (and, if preemptive, running) jobs; the lowest key goes first."""

    @property
    def spec(self) -> str:
        """Return the policy with its parameters as text."""

    @property
    def preemptive(self) -> bool:
        """Tell whether running jobs are ranked too and may have to yield."""

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the job's place; equal keys are broken by submit time, then by id."""


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
