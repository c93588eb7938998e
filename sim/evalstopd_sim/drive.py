"""The drive per eval: a base policy and a rule over a workload, on the emulated cluster, without a store."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from evalstopd.core.policies import Policy, Trend
from evalstopd.errors import WrongUsage
from evalstopd_sim.engine import Timeline, run
from evalstopd_sim.events import Arrival, Eligible, EvalSeen, Goal, Order, PutLast, Turn
from evalstopd_sim.journal import Decision
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.ranks import Running, Waiting
from evalstopd_sim.rule import NO_RULE, Rule, plan_end
from evalstopd_sim.sight import first_view, later_view, loss_drop_per_s
from evalstopd_sim.simjob import NO_ENTRY, End, SimJob
from evalstopd_sim.space import space
from evalstopd_sim.tally import Tally, usage
from evalstopd_sim.truth import TrueJob


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A base policy with a rule wrapped round it, and where its decisions are written down."""

    policy: Policy
    rule: Rule = NO_RULE
    journal: list[Decision] | None = field(default=None, compare=False)


def drive(jobs: Iterable[TrueJob], scheduler: Scheduler, options: ClusterOptions) -> Tally:
    """Run a workload, sorted by submit time, to its end and return what it came to.

    Raises WrongUsage for a job that the cluster cannot hold or that is out of order.
    """
    return Drive(iter(jobs), scheduler, options).go()


class Drive:
    """One run. Whoever stands above it may take it through the events in steps."""

    def __init__(self, jobs: Iterator[TrueJob], scheduler: Scheduler, options: ClusterOptions) -> None:
        self._jobs = jobs
        self._policy = scheduler.policy
        self._rule = scheduler.rule
        self._journal = scheduler.journal
        self._options = options
        self._timeline = Timeline()
        self._space = space(options)
        self._waiting = Waiting()
        self._running = Running()
        self._tally = Tally(options.gpus)
        self._due = False
        self._ranked = scheduler.policy.preemptive
        self._watches_evals = scheduler.policy.sees_evals
        self._watches_starts = scheduler.policy.sees_running

    def go(self) -> Tally:
        """Take every event and return what the run came to."""
        self._submit_next()
        run(self._timeline, self._handlers(), self._settle, self._options.until_s)
        return self._tally

    def _handlers(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            Arrival: self._arrived,
            Goal: self._reached,
            EvalSeen: self._eval_seen,
            Turn: self._turned,
            PutLast: self._put_last,
            Eligible: self._eligible,
        }

    def _submit_next(self) -> None:
        job = next(self._jobs, None)
        if job is None:
            return
        if job.gpus > self._options.gpus:
            raise WrongUsage(f"job {job.job_id} asks for {job.gpus} GPUs, more than the cluster's {self._options.gpus}")
        if job.submit_s < self._timeline.now_s:
            raise WrongUsage(f"job {job.job_id} was submitted before the job listed ahead of it")
        self._timeline.at(job.submit_s, Order.ARRIVAL, Arrival(job))

    def _arrived(self, event: Arrival) -> None:
        truth = event.job
        job = SimJob(truth, self._tally.arrived(truth), truth.gpus, first_view(truth))
        self._enqueue(job)
        self._submit_next()

    def _eligible(self, event: Eligible) -> None:
        self._enqueue(event.job)

    def _enqueue(self, job: SimJob) -> None:
        self._rank(job)
        self._waiting.add(job)
        self._due = True

    def _rank(self, job: SimJob) -> None:
        view = job.view
        job.entry = (self._policy.key(view, self._timeline.now_s), view.submitted_s, view.job_id, job)

    def _settle(self) -> None:
        if not self._due:
            return
        self._due = False
        if not self._waiting:
            return
        changes = self._space.changes(self._waiting, self._running, self._timeline.now_s)
        for job in changes.yields:
            self._yield(job)
        for job in changes.starts:
            self._start(job)

    def _start(self, job: SimJob) -> None:
        now_s = self._timeline.now_s
        self._waiting.remove(job)
        self._space.take(job)
        if not job.started:
            plan_end(job, self._rule)
        overhead_s = self._options.preemption_overhead_s if job.preemptions else 0.0
        job.running, job.started, job.held_from_s, job.begun_s = True, True, now_s, now_s + overhead_s
        job.life += 1
        if self._journal is not None:
            self._note("start", job)
        self._timeline.at(job.begun_s + job.goal_s - job.done_s, Order.GOAL, Goal(job, job.life))
        if self._ranked:
            if self._watches_starts:
                job.view = later_view(job.view, job.done_s, running=True)
                self._rank(job)
            self._follow(job)
        if self._watches_evals:
            self._await_eval(job)
        if job.last_from_s < inf and not job.is_last:
            self._timeline.at(job.begun_s + job.last_from_s - job.done_s, Order.EVAL, PutLast(job, job.life))

    def _follow(self, job: SimJob) -> None:
        """Rank a running job along its trend; while it pays for its resumption its key stands still."""
        now_s = self._timeline.now_s
        resuming_s = job.begun_s - now_s
        job.trend = Trend(0.0, resuming_s) if resuming_s > 0 else self._policy.trend(job.view)
        self._running.add(job, now_s)
        turn_s = now_s + job.trend.holds_s
        if turn_s < job.begun_s + job.goal_s - job.done_s:
            self._timeline.at(turn_s, Order.TURN, Turn(job, job.life))

    def _await_eval(self, job: SimJob) -> None:
        marks = job.truth.marks
        if job.seen < len(marks) and marks[job.seen] <= job.goal_s:
            due_s = job.begun_s + marks[job.seen] - job.done_s
            self._timeline.at(due_s, Order.EVAL, EvalSeen(job, job.life))

    def _leave(self, job: SimJob, now_s: float) -> None:
        """Take a running job's GPUs back and book what it did with them."""
        if self._ranked:
            self._running.remove(job)
        self._space.give_back(job)
        job.overhead_s += min(job.begun_s, now_s) - job.held_from_s
        job.done_s = job.work_s(now_s)
        job.running = False
        job.life += 1

    def _yield(self, job: SimJob) -> None:
        now_s = self._timeline.now_s
        self._leave(job, now_s)
        job.preemptions += 1
        self._note("yield", job)
        job.view = later_view(job.view, job.done_s, running=False)
        if self._options.requeue_delay_s:
            self._timeline.at(now_s + self._options.requeue_delay_s, Order.ELIGIBLE, Eligible(job))
        else:
            self._rank(job)
            self._waiting.add(job)

    def _reached(self, event: Goal) -> None:
        job = event.job
        if event.life != job.life:
            return
        self._leave(job, self._timeline.now_s)
        job.done_s = job.goal_s
        if job.end is End.STOPPED:
            self._note("stop", job)
        self._tally.ended(job, self._timeline.now_s, usage(job))
        # The entry leads back to its job: without it a job that is over is freed at once, not by the next search.
        job.entry = NO_ENTRY
        self._due = True

    def _eval_seen(self, event: EvalSeen) -> None:
        job = event.job
        if event.life != job.life:
            return
        job.seen += 1
        self._look_again(job, loss_drop_per_s=loss_drop_per_s(job.truth, job.seen))
        self._due = True
        self._await_eval(job)

    def _put_last(self, event: PutLast) -> None:
        job = event.job
        if event.life != job.life:
            return
        job.is_last = True
        self._note("last", job)
        self._look_again(job, declines=_MANY)
        self._due = True

    def _turned(self, event: Turn) -> None:
        job = event.job
        if event.life != job.life:
            return
        self._due = self._due or job.trend.jumps
        self._look_again(job)

    def _look_again(self, job: SimJob, **seen: Any) -> None:
        """Rank a running job anew, by what is seen of it now."""
        view = job.view._replace(**seen) if seen else job.view
        job.view = later_view(view, job.work_s(self._timeline.now_s), running=True)
        if self._ranked:
            self._running.remove(job)
            self._rank(job)
            self._follow(job)

    def _note(self, verb: str, job: SimJob) -> None:
        """Write a decision down, where somebody wants to know."""
        if self._journal is not None:
            self._journal.append(Decision(self._timeline.now_s, verb, job.view.job_id))


# A job that was put last stays last: more declines than any rule asks for.
_MANY = 1_000_000
