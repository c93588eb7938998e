"""Slurm's controller: the queue, and what is asked of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.model import Ending, Job, Life
from evalstopd.core.shift import Steer


@dataclass(frozen=True, slots=True)
class Queue:
    """One whole listing of a cluster's queue: pending, running, suspended and ending jobs."""

    cluster: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class EndingQuery:
    """Which life of a job accounting is asked about; `submitted_s` tells lives and reused ids apart."""

    job_id: str
    life: Life


class Cluster(Protocol):
    """The scheduler. Each call is one scheduler call, whatever the number of jobs.

    Raises Unavailable where the scheduler does not answer wholly and in time.
    """

    def queue(self) -> Queue:
        """List the queue. An answer that is partial, contradictory or without a cluster name is Unavailable."""

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Show these jobs as they are now, recently ended ones too; unknown ids are left out."""

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Ask to end these running jobs. Success proves nothing: look again.

        Raises Rejected where there is no right to; Unavailable where the outcome is unknown.
        """

    def requeue_hold(self, job_id: str) -> None:
        """Ask to end this running job's life and to hold it in the queue for a next one; success proves nothing.

        What does not run is left alone, ended jobs above all. Raises NotRequeueable where Slurm may not requeue it,
        Rejected where there is no right to, Unavailable where the outcome is unknown.
        """

    def put_back(self, job_id: str) -> None:
        """Ask to end this running job's life and to queue it for a next one; success proves nothing.

        What does not run is left alone. Raises as `requeue_hold` does.
        """

    def release(self, job_id: str) -> None:
        """Let a held job go on; one that is not held stays as it is.

        Raises Rejected without the right to (an admin's hold is not the owner's to lift), or for an ended job.
        """

    def signal(self, job_id: str, name: str) -> None:
        """Send a signal to the job's batch script alone. Raises Rejected without the right to."""

    def endings(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, Ending]:
        """Tell how these lives ended; those not known to have ended are left out."""

    def served(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, float]:
        """Tell how many seconds these jobs ran before these lives; those that accounting does not know are left out."""

    def set_comment(self, job_id: str, comment: str) -> None:
        """Replace the comment of a job, by its `address`. Raises NotAllowed (no right) or Rejected (an ended job).

        The plain id of an array, or of a heterogeneous job, means all its tasks or components.
        """

    def steer(self, asks: Sequence[Steer]) -> None:
        """Set Nice or Priority of waiting jobs, in the order given; success proves nothing. Those gone are left out.

        Raises Rejected without the right to, where some may have been set; Unavailable where the outcome is unknown.
        """
