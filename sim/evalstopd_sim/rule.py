"""What is wrapped round a base policy: a rule that finds the work at which a job is to be stopped, and what then."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from evalstopd.core.detectors import Detector, Never
from evalstopd.core.model import JobView
from evalstopd_sim.sight import first_stop
from evalstopd_sim.simjob import End, SimJob, Trigger
from evalstopd_sim.truth import RLHF, TrueJob


class Act(StrEnum):
    """What happens to a job that the rule fires on."""

    STOP = "stop"
    PUT_LAST = "put last"


class Rule(Protocol):
    """A stopping rule as the drive uses it."""

    @property
    def label(self) -> str:
        """Return the rule's name for tables."""

    @property
    def act(self) -> Act:
        """Return what happens to a job it fires on."""

    def trigger(self, job: TrueJob, view: JobView) -> Trigger | None:
        """Return where the rule fires on this job; None if it never does."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """EvalStop round a base policy: one of core's detectors, acting on RLHF jobs, as in the paper."""

    detector: Detector
    act: Act = Act.STOP

    @property
    def label(self) -> str:
        """Return the rule's name for tables, `k-declines(2)`."""
        name, _, params = self.detector.spec.partition(":")
        values = [pair.partition("=")[2] for pair in params.split(",") if pair]
        told = "none" if name == "never" else f"{name}({','.join(values)})" if values else name
        return told if self.act is Act.STOP else f"put-last({told})"

    def trigger(self, job: TrueJob, view: JobView) -> Trigger | None:
        """Return the eval at which the detector first says stop."""
        if view.kind != RLHF or isinstance(self.detector, Never):
            return None
        found = first_stop(self.detector, job, view)
        return None if found is None else Trigger(job.marks[found[0]], found[0], found[1].count)


NO_RULE = Wrapper(Never())


def plan_end(job: SimJob, rule: Rule) -> None:
    """Look up how a job will end, once: by its whole work, its owner's cancel or the rule."""
    truth = job.truth
    job.goal_s, job.end = truth.duration_s, End.FINISHED
    if truth.cancel_s < job.goal_s:
        job.goal_s, job.end = truth.cancel_s, End.CANCELLED
    trigger = rule.trigger(truth, job.view)
    if trigger is None or trigger.work_s > job.goal_s:
        return
    job.trigger = trigger
    if rule.act is Act.STOP:
        job.goal_s, job.end = trigger.work_s, End.STOPPED
    else:
        job.last_from_s = trigger.work_s
