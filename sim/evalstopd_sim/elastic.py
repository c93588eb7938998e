"""The drive for elastic policies: jobs run on the GPUs they are given, as fast as their hidden scaling allows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

from evalstopd.core.estimate import speed_up
from evalstopd.core.model import Eval
from evalstopd.core.policies import ElasticPolicy
from evalstopd.core.policies.goodput import efficiency
from evalstopd.errors import WrongUsage
from evalstopd_sim.engine import Timeline, run
from evalstopd_sim.events import Arrival, EvalSeen, Goal, Order, Round
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.rule import Act, Rule, plan_end
from evalstopd_sim.sight import first_view, later_view, loss_at
from evalstopd_sim.simjob import SimJob
from evalstopd_sim.tally import Tally, Usage
from evalstopd_sim.truth import TrueJob


@dataclass(slots=True, eq=False)
class ElasticJob(SimJob):
    """A job with `given` GPUs since `begun_s` at `rate` (work per second; 1 on the GPUs asked for)."""

    given: int = 0
    rate: float = 0.0
    ran_s: float = 0.0
    work_gpu_s: float = 0.0
    past_gpu_s: float = 0.0
    overhead_gpu_s: float = 0.0

    def advance(self, now_s: float) -> None:
        """Book what the job has done since it was last looked at."""
        paid_s = max(0.0, min(now_s, self.begun_s) - self.held_from_s)
        worked_s = max(0.0, now_s - max(self.begun_s, self.held_from_s)) if self.given else 0.0
        before_s, self.done_s = self.done_s, self.done_s + worked_s * self.rate
        self.held_from_s = now_s
        self.ran_s += worked_s
        self.overhead_gpu_s += paid_s * self.given
        self.work_gpu_s += worked_s * self.given
        past_s = self.done_s - max(before_s, self.truth.peak_s)
        if past_s > 0:
            self.past_gpu_s += past_s / self.rate * self.given


def drive_elastic(jobs: Iterable[TrueJob], policy: ElasticPolicy, rule: Rule, options: ClusterOptions) -> Tally:
    """Run a workload, sorted by submit time, under an elastic policy.

    GPUs are divided anew at the first round after something was seen: a job came or ended, or an eval
    arrived. The overhead is paid on each resume; growing and shrinking are taken to cost nothing. Raises
    WrongUsage for nodes, which it does not model, and for putting jobs last, which needs a ranking.
    """
    if options.gpus_per_node is not None:
        raise WrongUsage(f"policy {policy.spec} cannot be combined with node placement")
    if rule.act is Act.PUT_LAST:
        raise WrongUsage(f"policy {policy.spec} ranks nobody, so no job can be put last")
    return _Elastic(iter(jobs), policy, rule, options).go()


class _Elastic:
    def __init__(self, jobs: Iterator[TrueJob], policy: ElasticPolicy, rule: Rule, options: ClusterOptions) -> None:
        self._jobs = jobs
        self._policy = policy
        self._rule = rule
        self._options = options
        self._timeline = Timeline()
        self._tally = Tally(options.gpus)
        self._here: dict[str, ElasticJob] = {}
        self._round_due = False

    def go(self) -> Tally:
        self._submit_next()
        handlers: Mapping[type, Callable[[Any], None]] = {
            Arrival: self._arrived,
            Goal: self._reached,
            EvalSeen: self._eval_seen,
            Round: self._divide,
        }
        run(self._timeline, handlers, lambda: None, self._options.until_s)
        return self._tally

    def _submit_next(self) -> None:
        job = next(self._jobs, None)
        if job is not None:
            self._timeline.at(job.submit_s, Order.ARRIVAL, Arrival(job))

    def _arrived(self, event: Arrival) -> None:
        truth = event.job
        job = ElasticJob(truth, self._tally.arrived(truth), truth.gpus, first_view(truth))
        plan_end(job, self._rule)
        self._here[truth.job_id] = job
        self._ask_for_round()
        self._submit_next()

    def _ask_for_round(self) -> None:
        if not self._round_due:
            self._round_due = True
            due_s = (floor(self._timeline.now_s / self._policy.round_s) + 1) * self._policy.round_s
            self._timeline.at(due_s, Order.ROUND, Round())

    def _divide(self, event: Round) -> None:
        del event
        self._round_due = False
        now_s = self._timeline.now_s
        for job in self._here.values():
            job.advance(now_s)
        views = [later_view(job.view, job.ran_s, running=job.given > 0) for job in self._here.values()]
        gpus = self._policy.allocate(views, self._options.gpus, now_s).gpus
        for job_id, job in self._here.items():
            self._give(job, gpus.get(job_id, 0))

    def _give(self, job: ElasticJob, gpus: int) -> None:
        if gpus == job.given:
            return
        now_s = self._timeline.now_s
        if gpus and not job.given:
            job.begun_s = now_s + (self._options.preemption_overhead_s if job.preemptions else 0.0)
            job.running = job.started = True
        elif not gpus:
            job.preemptions += 1
            job.running = False
            job.begun_s = now_s
        job.given, job.life = gpus, job.life + 1
        job.rate = rate(job.truth, gpus, job.done_s)
        if gpus:
            self._expect(job)

    def _expect(self, job: ElasticJob) -> None:
        """Ask for the job's next eval, or its end if that comes first."""
        from_s = max(self._timeline.now_s, job.begun_s)
        marks = job.truth.marks
        if job.seen < len(marks) and marks[job.seen] < job.goal_s:
            due_s = from_s + max(0.0, marks[job.seen] - job.done_s) / job.rate
            self._timeline.at(due_s, Order.EVAL, EvalSeen(job, job.life))
        else:
            due_s = from_s + max(0.0, job.goal_s - job.done_s) / job.rate
            self._timeline.at(due_s, Order.GOAL, Goal(job, job.life))

    def _eval_seen(self, event: EvalSeen) -> None:
        job = self._current(event)
        if job is None:
            return
        job.advance(self._timeline.now_s)
        job.done_s = job.truth.marks[job.seen]
        seen = Eval(job.seen + 1, 0.0, elapsed_s=job.ran_s, loss=loss_at(job.truth, job.done_s))
        job.view = job.view._replace(evals=(*job.view.evals[-1:], seen))
        job.seen += 1
        self._ask_for_round()
        self._expect(job)

    def _reached(self, event: Goal) -> None:
        job = self._current(event)
        if job is None:
            return
        job.advance(self._timeline.now_s)
        job.done_s = job.goal_s
        del self._here[job.truth.job_id]
        used = Usage(job.work_gpu_s, job.past_gpu_s, job.overhead_gpu_s)
        self._tally.ended(job, self._timeline.now_s, used)
        if self._here:
            self._ask_for_round()

    def _current(self, event: EvalSeen | Goal) -> ElasticJob | None:
        job = event.job
        return job if isinstance(job, ElasticJob) and event.life == job.life else None


def rate(job: TrueJob, gpus: int, done_s: float) -> float:
    """Return the work per second on `gpus` GPUs: throughput times statistical efficiency, 1 on those asked for."""
    done = min(1.0, done_s / job.duration_s)
    given = speed_up(gpus, job.scaling) * efficiency(gpus, done)
    return given / (speed_up(job.gpus, job.scaling) * efficiency(job.gpus, done)) if gpus else 0.0
