"""The ports of a daemon that may be deposed: every write carries its epoch, every act asks for the lease first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.binding import Binding
from evalstopd.core.caps import Decision
from evalstopd.core.corroborate import OwnerLog
from evalstopd.core.intent import Intent
from evalstopd.core.model import Ending, Job, JobKey, Point
from evalstopd.core.preempt import Preemption
from evalstopd.core.shift import AT_ONCE, Steer
from evalstopd.lead.lead import Lead, LedStore
from evalstopd.ports import (
    Book,
    Changes,
    Cluster,
    EndingQuery,
    Keeper,
    PinPlace,
    PinReport,
    Ports,
    Queue,
    RunWriter,
)


def fenced(ports: Ports, lead: Lead, act_s: float) -> Ports:
    """Return ports that write and act only while this process leads; an act on Slurm may take `act_s` seconds.

    What they refuse raises Deposed. Reading is free, but for the book of a cluster: it is led by one lease.
    Messages need no fence of their own: each is recorded before.
    """
    return replace(
        ports,
        cluster=FencedCluster(ports.cluster, lead, act_s),
        runs=FencedRuns(ports.runs, lead),
        keeper=FencedKeeper(ports.keeper, lead),
        store=FencedStore(lead.store, lead),
        should_stop=lambda: ports.should_stop() or not lead.leads,
    )


@dataclass(frozen=True, slots=True)
class FencedStore:
    """Writes as the leader only: the database itself compares the epochs, in the transaction that writes."""

    store: LedStore
    lead: Lead

    def book(self, cluster: str) -> Book:
        """Return what is open on a cluster, as each pass does first. Raises Deposed where another lease leads it."""
        self.lead.claim(cluster)
        return self.store.book(cluster)

    def holders(self, run_ids: Sequence[str]) -> Mapping[str, Binding]:
        """Return each of these runs' last binding."""
        return self.store.holders(run_ids)

    def points(self, keys: Sequence[JobKey]) -> Mapping[JobKey, tuple[Point, ...]]:
        """Return the stored points of these jobs."""
        return self.store.points(keys)

    def decisions(self, cluster: str, since_s: float) -> tuple[Decision, ...]:
        """Return the stops that were decided, would have been, or were acted on since then."""
        return self.store.decisions(cluster, since_s)

    def preemptions(self, cluster: str, since_s: float) -> tuple[Preemption, ...]:
        """Return the preemptions asked for since then."""
        return self.store.preemptions(cluster, since_s)

    def stops_of(self, cluster: str, job_ids: Sequence[str]) -> tuple[Intent, ...]:
        """Return the stops done to jobs of these ids."""
        return self.store.stops_of(cluster, job_ids)

    def record(self, changes: Changes) -> None:
        """Write all changes in one transaction, or none. Raises Deposed where this process does not lead."""
        self.store.record_as(self.lead.name, self.lead.epoch(), changes)


@dataclass(frozen=True, slots=True)
class FencedCluster:
    """Acts on jobs only while the lease outlasts the act: its command is ended sooner than another can lead."""

    cluster: Cluster
    lead: Lead
    act_s: float

    def queue(self) -> Queue:
        """List the queue."""
        return self.cluster.queue()

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Show these jobs as they are now."""
        return self.cluster.look(job_ids)

    def endings(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, Ending]:
        """Tell how these lives ended."""
        return self.cluster.endings(queries)

    def served(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, float]:
        """Tell how many seconds these jobs ran before these lives."""
        return self.cluster.served(queries)

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Ask to end these running jobs. Raises Deposed without the lease."""
        self.lead.epoch(self.act_s)
        self.cluster.cancel(job_ids)

    def requeue_hold(self, job_id: str) -> None:
        """Ask to end this running job's life and to hold it. Raises Deposed without the lease."""
        self.lead.epoch(self.act_s)
        self.cluster.requeue_hold(job_id)

    def put_back(self, job_id: str) -> None:
        """Ask to requeue this running job. Raises Deposed without the lease."""
        self.lead.epoch(self.act_s)
        self.cluster.put_back(job_id)

    def release(self, job_id: str) -> None:
        """Let a held job go on. Raises Deposed without the lease."""
        self.lead.epoch(self.act_s)
        self.cluster.release(job_id)

    def signal(self, job_id: str, name: str) -> None:
        """Send a signal to the job's batch script. Raises Deposed without the lease."""
        self.lead.epoch(self.act_s)
        self.cluster.signal(job_id, name)

    def set_comment(self, job_id: str, comment: str) -> None:
        """Replace the job's comment. Raises Deposed without the lease."""
        self.lead.epoch(self.act_s)
        self.cluster.set_comment(job_id, comment)

    def steer(self, asks: Sequence[Steer]) -> None:
        """Set Nice or Priority of waiting jobs, a command's worth at a time. Raises Deposed without the lease."""
        for start in range(0, len(asks), AT_ONCE):
            self.lead.epoch(self.act_s)
            self.cluster.steer(asks[start : start + AT_ONCE])


@dataclass(frozen=True, slots=True)
class FencedRuns:
    """Writes to runs while it leads; both writes can be repeated, so one that comes late does no harm."""

    runs: RunWriter
    lead: Lead

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags on a run. Raises Deposed without the lease."""
        self.lead.epoch()
        self.runs.tag(run_id, tags)

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING. Raises Deposed without the lease."""
        self.lead.epoch()
        return self.runs.mark_killed(run_id)


@dataclass(frozen=True, slots=True)
class FencedKeeper:
    """Does file work while it leads; each verb can be repeated, so one that comes late does no harm."""

    keeper: Keeper
    lead: Lead

    def pin(self, place: PinPlace) -> PinReport:
        """Link and verify a checkpoint into its pin. Raises Deposed without the lease."""
        self.lead.epoch()
        return self.keeper.pin(place)

    def repin(self, place: PinPlace) -> PinReport:
        """Make a pin anew in place of an earlier one. Raises Deposed without the lease."""
        self.lead.epoch()
        return self.keeper.repin(place)

    def verify(self, place: PinPlace) -> PinReport:
        """Check a pin."""
        return self.keeper.verify(place)

    def publish(self, place: PinPlace) -> PinReport:
        """Verify a pin and make it the job's best. Raises Deposed without the lease."""
        self.lead.epoch()
        return self.keeper.publish(place)

    def drop(self, place: PinPlace) -> None:
        """Remove a pin. Raises Deposed without the lease."""
        self.lead.epoch()
        self.keeper.drop(place)

    def log(self, place: PinPlace) -> OwnerLog:
        """Read the owner's newest training log."""
        return self.keeper.log(place)
