"""A drive that is taken through time from outside, and keeps of each job what a scheduler would show of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from evalstopd.core.model import Ending, Job, Life
from evalstopd_sim.drive import Drive, Scheduler
from evalstopd_sim.engine import run
from evalstopd_sim.events import Arrival, Eligible, Goal, Order
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.simjob import End, SimJob, Trigger
from evalstopd_sim.tally import Tally
from evalstopd_sim.truth import TrueJob

_STATES = {End.FINISHED: "COMPLETED", End.STOPPED: "CANCELLED", End.CANCELLED: "CANCELLED"}
REQUEUED = "REQUEUED"


@dataclass(slots=True, eq=False)
class Record:
    """A submitted job as its scheduler keeps it; times in whole seconds, as Slurm tells them.

    `comment` None: whatever the cluster gives a job like this one. `shown` is its last picture, until something
    about it changes. A requeued job may not start before `eligible_s`, a held one not before it is released.
    """

    job: SimJob
    raw_id: int
    submitted_s: int
    started_s: int | None = None
    restarts: int = 0
    comment: str | None = None
    state: str = "PENDING"
    ended_s: float = inf
    shown: Job | None = None
    held: bool = False
    eligible_s: float = 0.0

    @property
    def job_id(self) -> str:
        """Return the id that the scheduler gave."""
        return str(self.raw_id)

    @property
    def life(self) -> Life:
        """Return the present life."""
        return Life(self.restarts, self.submitted_s)


class Simulation(Drive):
    """A run that others take from moment to moment; `records` are all jobs submitted, `live` those not over."""

    def __init__(self, jobs: Iterable[TrueJob], scheduler: Scheduler, options: ClusterOptions) -> None:
        super().__init__(iter(jobs), scheduler, options)
        self.records: dict[str, Record] = {}
        self.live: dict[str, Record] = {}
        self.ended: dict[tuple[str, Life], Ending] = {}
        self._does = self._handlers()
        self._submit_next()

    @property
    def tally(self) -> Tally:
        """Return what the run has come to so far."""
        return self._tally

    @property
    def over(self) -> bool:
        """Tell whether nothing is left to happen."""
        return self.next_s == inf and not self.live

    @property
    def next_s(self) -> float:
        """Return when something happens next by itself."""
        return self._timeline.peek()

    def now_s(self) -> float:
        """Return the virtual time."""
        return self._timeline.now_s

    def advance(self, to_s: float) -> None:
        """Let everything up to this moment happen; an earlier one than now changes nothing."""
        run(self._timeline, self._does, self._settle, to_s)
        self._timeline.now_s = max(to_s, self._timeline.now_s)

    def submit(self, job: TrueJob) -> None:
        """Submit a job now, beside those of the workload; `advance` lets it arrive."""
        self._timeline.at(self.now_s(), Order.ARRIVAL, Arrival(job))

    def stop(self, record: Record, trigger: Trigger | None) -> None:
        """End a running job at once, and let others have its GPUs; `trigger` is the eval that is the reason."""
        job = record.job
        job.goal_s, job.end, job.trigger = job.work_s(self.now_s()), End.STOPPED, trigger
        self._end_now(job)

    def finish(self, record: Record) -> None:
        """Let a running job end well before its time."""
        record.job.goal_s = record.job.work_s(self.now_s())
        self._end_now(record.job)

    def requeue(self, record: Record) -> None:
        """Take a running job off its GPUs and queue it anew."""
        self._yield(record.job)
        self._due = True
        self._settle()

    def hold(self, record: Record) -> None:
        """Take a running job off its GPUs and keep it from starting until it is released."""
        record.held = True
        self._yield(record.job)
        if not self._options.requeue_delay_s:
            self._waiting.remove(record.job)
        self._due = True
        self._settle()

    def release(self, record: Record) -> None:
        """Let a held job start again, once it may; one that is not held stays as it is."""
        if not record.held:
            return
        record.held, record.shown = False, None
        if self.now_s() >= record.eligible_s:
            self._enqueue(record.job)
            self._settle()

    def _eligible(self, event: Eligible) -> None:
        if not self._record(event.job).held:
            super()._eligible(event)

    def _end_now(self, job: SimJob) -> None:
        self._reached(Goal(job, job.life))
        self._settle()

    def _enqueue(self, job: SimJob) -> None:
        raw_id = job.index + 1
        if str(raw_id) not in self.records:
            self.records[str(raw_id)] = self.live[str(raw_id)] = Record(job, raw_id, int(job.truth.submit_s))
        super()._enqueue(job)

    def _start(self, job: SimJob) -> None:
        super()._start(job)
        record = self._record(job)
        record.started_s, record.state, record.shown = int(self.now_s()), "RUNNING", None

    def _yield(self, job: SimJob) -> None:
        record = self._record(job)
        self.ended[(record.job_id, record.life)] = Ending(REQUEUED, self.now_s())
        record.restarts, record.submitted_s = record.restarts + 1, int(self.now_s())
        record.started_s, record.state, record.shown = None, "PENDING", None
        record.eligible_s = self.now_s() + self._options.requeue_delay_s
        super()._yield(job)

    def _reached(self, event: Goal) -> None:
        if event.life != event.job.life:
            return
        super()._reached(event)
        record = self._record(event.job)
        record.state, record.ended_s, record.shown = _STATES[event.job.end], self.now_s(), None
        self.ended[(record.job_id, record.life)] = Ending(record.state, record.ended_s)
        del self.live[record.job_id]

    def _record(self, job: SimJob) -> Record:
        return self.records[str(job.index + 1)]
