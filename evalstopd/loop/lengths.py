"""Jobs' estimated lengths as the loop asks for them: by what is known of their kin at that moment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.estimates import History, lengths
from evalstopd.core.lineup import Waiting
from evalstopd.core.model import Job
from evalstopd.ports import Clock

LengthsOf = Callable[[Sequence[Job]], Mapping[str, float]]
"""Returns the estimated lengths of jobs in seconds, by id; those that are not known are left out."""


def limits_of(jobs: Sequence[Job]) -> Mapping[str, float]:
    """Return the time limits of jobs, by id."""
    return {job.job_id: float(job.time_limit_s) for job in jobs if job.time_limit_s is not None}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Estimates by a history that others keep; `history` returns a cluster's. Jobs without a time limit have none."""

    history: Callable[[str], History]
    clock: Clock

    def __call__(self, waiting: Sequence[Waiting]) -> Mapping[str, float]:
        """Return the length of each waiting job or array in seconds, by its name."""
        found = self.of([each.job for each in waiting])
        return {each.name: found[each.job.job_id] for each in waiting if each.job.job_id in found}

    def of(self, jobs: Sequence[Job]) -> Mapping[str, float]:
        """Return the length of each job in seconds, by its id; a running one's by what ran at least as long."""
        if not jobs:
            return {}
        found = lengths(self.history(jobs[0].cluster), jobs, self.clock.now_s())
        return {job_id: each.length_s for job_id, each in found.items()}
