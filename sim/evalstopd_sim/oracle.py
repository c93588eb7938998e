"""Rules that read the hidden truth. They cannot exist on a cluster: yardsticks, named as such."""

from bisect import bisect_right
from dataclasses import dataclass
from math import inf

from evalstopd.core.model import JobView
from evalstopd_sim.rule import Act
from evalstopd_sim.simjob import Trigger
from evalstopd_sim.truth import RLHF, TrueJob


@dataclass(frozen=True, slots=True)
class StopAtOracle:
    """Stop every RLHF job at an exact share of its true work: the paper's StopAt-0.65."""

    share: float = 0.65
    act: Act = Act.STOP

    @property
    def label(self) -> str:
        """Return the rule's name for tables."""
        return f"stop-at-oracle({self.share:g})"

    def trigger(self, job: TrueJob, view: JobView) -> Trigger | None:
        """Return the work at that share, and the last eval before it."""
        if view.kind != RLHF:
            return None
        work_s = self.share * job.duration_s
        before = bisect_right(job.marks, work_s)
        return Trigger(work_s, before - 1 if before else None)


@dataclass(frozen=True, slots=True)
class PeakOracle:
    """Stop every hacking job exactly at its true peak: what no rule can beat."""

    act: Act = Act.STOP

    @property
    def label(self) -> str:
        """Return the rule's name for tables."""
        return "peak-oracle"

    def trigger(self, job: TrueJob, view: JobView) -> Trigger | None:
        """Return the work at the peak of a hacking job, and the last eval before it."""
        del view
        if job.peak_s == inf:
            return None
        before = bisect_right(job.marks, job.peak_s)
        return Trigger(job.peak_s, before - 1 if before else None)
