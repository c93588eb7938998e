"""The Cluster port over a running simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.model import Ending, Job, Phase
from evalstopd.core.shift import Steer
from evalstopd.errors import NotRequeueable, Rejected
from evalstopd.ports import EndingQuery, Queue
from evalstopd_sim.emulated.simulation import Record, Simulation
from evalstopd_sim.simjob import Trigger

_PHASES = {"PENDING": Phase.PENDING, "RUNNING": Phase.RUNNING}


@dataclass(frozen=True, slots=True)
class User:
    """Whom a job belongs to."""

    uid: int
    name: str


OWNER = User(1000, "owner")


@dataclass(slots=True)
class EmulatedCluster:
    """A Slurm that answers at once and always.

    `comment_of` gives the comment that a job is submitted with; `reason_of` the eval that a cancel rests on,
    which the simulation's own books want to know. `limit_s` is the time limit that every job shows, in seconds; none is
    ended by it, so it must be longer than any job. `fixed` jobs may not be
    requeued.
    """

    world: Simulation
    comment_of: Callable[[Record], str] = lambda record: ""
    reason_of: Callable[[Record], Trigger | None] = lambda record: None
    owner_of: Callable[[Record], User] = lambda record: OWNER
    name: str = "emulated"
    work_dir: str = "/emulated"
    limit_s: int | None = None
    signals: list[tuple[str, str]] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    steered: list[Steer] = field(default_factory=list)

    def queue(self) -> Queue:
        """List the jobs that are not over."""
        return Queue(self.name, tuple([self._shown(record) for record in self.world.live.values()]))

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Show these jobs, ended ones too."""
        records = self.world.records
        return {job_id: self._shown(records[job_id]) for job_id in job_ids if job_id in records}

    def cancel(self, job_ids: Sequence[str]) -> None:
        """End these jobs where they run, at this very moment."""
        for record in self._live(job_ids):
            if record.state == "RUNNING":
                self.world.stop(record, self.reason_of(record))

    def requeue_hold(self, job_id: str) -> None:
        """Take a running job off its GPUs and hold it. Raises NotRequeueable for one that may not be requeued."""
        for record in self._live([job_id]):
            if record.state == "RUNNING" and job_id in self.fixed:
                raise NotRequeueable("it may not be requeued")
            if record.state == "RUNNING":
                self.world.hold(record)

    def put_back(self, job_id: str) -> None:
        """Take a running job off its GPUs and queue it anew. Raises NotRequeueable for one that may not be requeued."""
        for record in self._live([job_id]):
            if record.state == "RUNNING" and job_id in self.fixed:
                raise NotRequeueable("it may not be requeued")
            if record.state == "RUNNING":
                self.world.requeue(record)

    def release(self, job_id: str) -> None:
        """Let a held job go on. Raises Rejected for a job that is over or unknown."""
        if not self._live([job_id]):
            raise Rejected(f"no job {job_id!a} that is not over")
        self.world.release(self.world.live[job_id])

    def signal(self, job_id: str, name: str) -> None:
        """Note a signal; emulated jobs pay no heed to it."""
        self.signals.append((job_id, name))

    def endings(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, Ending]:
        """Tell how these lives ended."""
        ended = self.world.ended
        found = {query: ended.get((query.job_id, query.life)) for query in queries}
        return {query: ending for query, ending in found.items() if ending is not None}

    def set_comment(self, job_id: str, comment: str) -> None:
        """Replace a job's comment. Raises Rejected for a job that is over or unknown."""
        for record in self._live([job_id]):
            record.comment, record.shown = comment, None
            return
        raise Rejected(f"no job {job_id!a} that is not over")

    def served(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, float]:
        """Tell how long these jobs have worked by now."""
        live = self.world.live
        return {query: live[query.job_id].job.done_s for query in queries if query.job_id in live}

    def steer(self, asks: Sequence[Steer]) -> None:
        """Note what was asked for; the emulated scheduler ranks its jobs by the policy itself."""
        self.steered.extend(asks)

    def _live(self, job_ids: Sequence[str]) -> list[Record]:
        live = self.world.live
        return [live[job_id] for job_id in job_ids if job_id in live]

    def _shown(self, record: Record) -> Job:
        if record.shown is None:
            record.shown = self._picture(record)
        return record.shown

    def _picture(self, record: Record) -> Job:
        job, owner = record.job, self.owner_of(record)
        limited = record.started_s is not None and self.limit_s is not None
        return Job(
            cluster=self.name,
            job_id=record.job_id,
            raw_id=record.raw_id,
            uid=owner.uid,
            user=owner.name,
            phase=_PHASES.get(record.state, Phase.ENDED),
            state=record.state,
            submitted_s=record.submitted_s,
            started_s=record.started_s,
            restarts=record.restarts,
            gpus=job.gpus,
            comment=self.comment_of(record) if record.comment is None else record.comment,
            name=job.truth.job_id,
            work_dir=f"{self.work_dir}/{record.job_id}",
            limit_end_s=(record.started_s or 0) + (self.limit_s or 0) if limited else None,
            nodes=tuple(f"node{node}" for node, _ in job.nodes) or ("slots",),
            held=record.held,
            time_limit_s=None if job.truth.estimate_s is None else int(job.truth.estimate_s),
        )
