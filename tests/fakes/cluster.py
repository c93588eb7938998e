"""A small Slurm: slots of GPUs, first come first served, lives, accounting, outages; times in whole seconds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalstopd.core.model import Ending, Job, Phase
from evalstopd.core.shift import Steer
from evalstopd.errors import NotAllowed, NotRequeueable, Rejected, Unavailable
from evalstopd.ports import EndingQuery, Queue

USERS = {1001: "alice", 1002: "bob", 1003: "carol", 1004: "dave", 1005: "erin"}


@dataclass(slots=True)
class FakeCluster:
    """The Cluster port over a dictionary of jobs. `calls` are the scheduler calls made.

    `fixed` jobs may not be requeued; `requeued` are those that were requeued and held, each with its life. `caller`
    is whose rights count, None for an operator's; the comments of `full` jobs take no word more, and on `admins` jobs
    lies an admin's hold.
    """

    now_s: Callable[[], float]
    gpus: int = 64
    name: str = "c"
    jobs: dict[str, Job] = field(default_factory=dict)
    ended: dict[EndingQuery, Ending] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    cancelled: list[tuple[str, int]] = field(default_factory=list)
    requeued: list[tuple[str, int]] = field(default_factory=list)
    put_backs: list[tuple[str, int]] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    full: set[str] = field(default_factory=set)
    admins: set[str] = field(default_factory=set)
    caller: int | None = None
    steered: list[tuple[Steer, ...]] = field(default_factory=list)
    fixed_priority: set[str] = field(default_factory=set)
    signalled: list[tuple[str, str]] = field(default_factory=list)
    down: bool = False
    deaf: bool = False
    nice_of_running: bool = False
    last_id: int = 0
    ran_s: dict[str, float] = field(default_factory=dict)
    natural: dict[str, int] = field(default_factory=dict)

    # --- what a test does

    def submit(self, uid: int = 1001, gpus: int = 8, comment: str = "", **fields: object) -> str:
        """Queue a job; it starts at once where there is room."""
        self.last_id += 1
        job_id = str(fields.pop("job_id", self.last_id))
        job = Job(
            self.name, job_id, self.last_id, uid, USERS[uid], Phase.PENDING, "PENDING", int(self.now_s()), None, 0,
            gpus, account="ml", partition="gpu", comment=comment, work_dir=f"/home/{USERS[uid]}",
            nodes=(f"n{self.last_id}",), priority=1000,
        )  # fmt: skip
        self.jobs[job_id] = replace(job, **fields)  # type: ignore[arg-type]
        self.natural[job_id] = self.jobs[job_id].priority
        self._schedule()
        return job_id

    def finish(self, job_id: str, state: str = "COMPLETED") -> None:
        """End a job's life and let the next one start."""
        job = self.jobs[job_id]
        self.ended[EndingQuery(job_id, job.life)] = Ending(state, float(int(self.now_s())))
        self.jobs[job_id] = replace(job, phase=Phase.ENDED, state=state)
        for other_id, other in self.jobs.items():
            if other.phase is Phase.PENDING:
                self.jobs[other_id] = replace(other, nodes=job.nodes)
        self._schedule()

    def requeue(self, job_id: str) -> None:
        """Put a running job back: a new life with a new submit time."""
        job = self.jobs[job_id]
        self.ended[EndingQuery(job_id, job.life)] = Ending("REQUEUED", float(int(self.now_s())))
        self.jobs[job_id] = replace(
            job, phase=Phase.PENDING, state="PENDING", restarts=job.restarts + 1, submitted_s=int(self.now_s()),
            started_s=None,
        )  # fmt: skip

    def start(self) -> None:
        """Start what fits."""
        self._schedule()

    # --- the port

    def queue(self) -> Queue:
        """List the queue; ended jobs are not in it."""
        self._call("queue")
        return Queue(self.name, tuple(job for job in self.jobs.values() if job.phase is not Phase.ENDED))

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Show jobs, ended ones too."""
        self._call("look")
        return {job_id: self.jobs[job_id] for job_id in job_ids if job_id in self.jobs}

    def cancel(self, job_ids: Sequence[str]) -> None:
        """End running jobs, unless the cluster is deaf: success proves nothing."""
        self._call("cancel")
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is not None and job.phase is Phase.RUNNING:
                self.cancelled.append((job_id, job.restarts))
                if not self.deaf:
                    self.finish(job_id, "CANCELLED")

    def requeue_hold(self, job_id: str) -> None:
        """Requeue and hold a running job, unless the cluster is deaf."""
        self._call("requeue_hold")
        job = self.jobs.get(job_id)
        if job is None or job.phase is not Phase.RUNNING:
            return
        if job_id in self.fixed:
            raise NotRequeueable("Slurm may not requeue it: --no-requeue")
        self.requeued.append((job_id, job.restarts))
        if not self.deaf:
            self.requeue(job_id)
            self.jobs[job_id] = replace(self.jobs[job_id], held=True)
            for other_id, other in self.jobs.items():
                if other.phase is Phase.PENDING and not other.held:
                    self.jobs[other_id] = replace(other, nodes=job.nodes)
            self._schedule()

    def put_back(self, job_id: str) -> None:
        """Requeue a running job, unless the cluster is deaf; it may not start again for two minutes."""
        self._call("put_back")
        job = self.jobs.get(job_id)
        if job is None or job.phase is not Phase.RUNNING:
            return
        if job_id in self.fixed:
            raise NotRequeueable("Slurm may not requeue it: --no-requeue")
        self._allow(job)
        self.put_backs.append((job_id, job.restarts))
        if not self.deaf:
            self.requeue(job_id)
            self.jobs[job_id] = replace(self.jobs[job_id], eligible_s=int(self.now_s()) + 120, reason="BeginTime")
            self._schedule()

    def release(self, job_id: str) -> None:
        """Let a held job go on."""
        self._call("release")
        job = self.jobs.get(job_id)
        if job is None or job.phase is Phase.ENDED:
            raise Rejected("the job has already finished")
        self._allow(job)
        if job_id in self.admins and self.caller is not None:
            raise NotAllowed("the job was not released: Access/permission denied")
        self.jobs[job_id] = replace(job, held=False)
        self._schedule()

    def signal(self, job_id: str, name: str) -> None:
        """Note a signal."""
        self._call("signal")
        self.signalled.append((job_id, name))

    def endings(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, Ending]:
        """Tell how lives ended."""
        self._call("endings")
        return {query: self.ended[query] for query in queries if query in self.ended}

    def set_comment(self, job_id: str, comment: str) -> None:
        """Replace a comment; the plain id of an array or of a heterogeneous job means those of all in the queue."""
        job_id, _, alone = job_id.partition("+")
        parts = [each for each, job in self.jobs.items() if job.het_id == self._raw_id(job_id) and each != job_id]
        for part in parts if not alone else ():
            self.set_comment(part, comment)
        tasks = [each for each, job in self.jobs.items() if each.startswith(f"{job_id}_") and job.phase != Phase.ENDED]
        if job_id not in self.jobs and tasks:
            for task in tasks:
                self.set_comment(task, comment)
            return
        self._call("set_comment")
        if self.jobs[job_id].phase is Phase.ENDED:
            raise Rejected("the job has already finished")
        self._allow(self.jobs[job_id])
        if job_id in self.full:
            raise Rejected("the comment has more than 1000 bytes")
        self.jobs[job_id] = replace(self.jobs[job_id], comment=comment)

    def served(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, float]:
        """Tell how long jobs ran in earlier lives, as a test set it."""
        self._call("served")
        return {query: self.ran_s[query.job_id] for query in queries if query.job_id in self.ran_s}

    def steer(self, asks: Sequence[Steer]) -> None:
        """Set Nice, whose difference moves the priority, or Priority; of running jobs only with `nice_of_running`."""
        self._call("steer")
        self.steered.append(tuple(asks))
        for ask in asks:
            for job in [each for each in self.jobs.values() if each.job_id.partition("_")[0] == ask.job_id]:
                takes = job.phase is Phase.PENDING or (job.phase is Phase.RUNNING and self.nice_of_running)
                if takes and not self.deaf:
                    self._steer(job, ask)
        self._schedule()

    def _steer(self, job: Job, ask: Steer) -> None:
        self._allow(job)
        if ask.priority is not None:
            job = replace(job, priority=ask.priority, nice=0)
            self.fixed_priority.add(job.job_id)
        if ask.anew:
            self.fixed_priority.discard(job.job_id)
            job = replace(job, priority=self.natural.get(job.job_id, 1000) - job.nice)
        if ask.nice is not None and job.job_id not in self.fixed_priority:
            moved = max(1, job.priority + job.nice - ask.nice)
            job = replace(job, priority=0 if job.held else moved, nice=ask.nice)
        self.jobs[job.job_id] = job

    def age(self, by: int, *job_ids: str) -> None:
        """Let priorities of waiting jobs rise, all of them or these, as they do with time."""
        for job_id, job in self.jobs.items():
            waits = job.phase is Phase.PENDING and job_id not in self.fixed_priority
            if waits and (not job_ids or job_id in job_ids):
                self.jobs[job_id] = replace(job, priority=job.priority + by)

    def _raw_id(self, job_id: str) -> int:
        return self.jobs[job_id].raw_id if job_id in self.jobs else -1

    def _allow(self, job: Job) -> None:
        if self.caller not in (None, job.uid):
            raise NotAllowed("Access/permission denied")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.down:
            raise Unavailable("slurmctld does not answer")

    def _schedule(self) -> None:
        for job_id, job in sorted(self.jobs.items(), key=lambda each: (-each[1].priority, each[1].raw_id)):
            used = sum(each.gpus for each in self.jobs.values() if each.phase is Phase.RUNNING)
            may_start = not job.held and job.eligible_s is not None and job.eligible_s <= self.now_s()
            if job.phase is Phase.PENDING and may_start and used + job.gpus <= self.gpus:
                self.jobs[job_id] = replace(job, phase=Phase.RUNNING, state="RUNNING", started_s=int(self.now_s()))
