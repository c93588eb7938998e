"""What a run came to: sums taken job by job as jobs end, so that a million jobs need no million records."""

from array import array
from bisect import bisect_right
from math import inf, nan
from typing import NamedTuple

from evalstopd_sim.checkpoint import regrets
from evalstopd_sim.simjob import End, SimJob
from evalstopd_sim.truth import RLHF, TrueJob


class Usage(NamedTuple):
    """What a job did with its GPUs, in GPU-seconds; `past_peak` is part of `work`."""

    work: float
    past_peak: float
    overhead: float


def usage(job: SimJob) -> Usage:
    """Return the usage of a job that always had the GPUs it asked for."""
    past = job.done_s - job.truth.peak_s
    return Usage(job.done_s * job.gpus, max(0.0, past) * job.gpus, job.overhead_s * job.gpus)


class Tally:
    """Sums over one run; GPU-seconds unless a name says otherwise."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.jct_s = array("d")
        self.stopped = bytearray()
        self.first_submit_s = inf
        self.last_end_s = 0.0
        self.over = self.cancelled = self.preemptions = 0
        self.hacking = self.healthy_rlhf = self.others = 0
        self.caught = self.caught_last = self.false = self.early = 0
        self.busy = self.overhead = self.past_peak = self.post_peak = self.false_work = self.early_work = 0.0
        self.delay_s = self.delay_evals = 0.0
        self.regret = [0.0, 0.0, 0.0]
        self.regretted = 0
        self.lost_level = 0.0

    def arrived(self, job: TrueJob) -> int:
        """Count a submitted job and return its number."""
        self.jct_s.append(nan)
        self.stopped.append(0)
        self.first_submit_s = min(self.first_submit_s, job.submit_s)
        if job.hacking:
            self.hacking += 1
        elif job.kind == RLHF:
            self.healthy_rlhf += 1
        else:
            self.others += 1
        return len(self.jct_s) - 1

    def ended(self, job: SimJob, now_s: float, used: Usage) -> None:
        """Count a job that is over."""
        truth = job.truth
        self.jct_s[job.index] = now_s - truth.submit_s
        self.last_end_s = now_s
        self.over += 1
        self.preemptions += job.preemptions
        self.cancelled += job.end is End.CANCELLED
        self.busy += used.work + used.overhead
        self.overhead += used.overhead
        if truth.hacking:
            self.past_peak += used.past_peak
            self.post_peak += max(0.0, min(truth.duration_s, truth.cancel_s) - truth.peak_s) * job.gpus
        if job.end is End.STOPPED:
            self.stopped[job.index] = 1
            self._stopped(job, used)
        if job.end is End.STOPPED or job.is_last:
            self._fired(job)

    def _stopped(self, job: SimJob, used: Usage) -> None:
        truth = job.truth
        if not truth.hacking:
            self.false_work += used.work
            self._count_lost_level(job)
        elif job.done_s < truth.peak_s:
            self.early += 1
            self.early_work += used.work

    def _fired(self, job: SimJob) -> None:
        truth = job.truth
        if not truth.hacking:
            self.false += 1
            return
        self.caught += 1
        if job.trigger is None:
            return
        self.caught_last += job.trigger.work_s >= truth.duration_s
        self.delay_s += max(0.0, job.trigger.work_s - truth.peak_s)
        passed = bisect_right(truth.marks, job.trigger.work_s) - bisect_right(truth.marks, truth.peak_s)
        self.delay_evals += max(0, passed)
        if job.trigger.eval_place is not None and truth.levels:
            self.regretted += 1
            best, before, stretch = regrets(truth, job.trigger.eval_place, job.trigger.declines)
            held = self.regret
            held[0] += best
            held[1] += before
            held[2] += stretch

    def _count_lost_level(self, job: SimJob) -> None:
        truth = job.truth
        if job.trigger is not None and job.trigger.eval_place is not None and truth.levels:
            seen = truth.scores[: job.trigger.eval_place + 1]
            self.lost_level += max(0.0, truth.levels[-1] - truth.levels[seen.index(max(seen))])
