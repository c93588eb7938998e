"""Least attained service: Tiresias' discretised two-dimensional ranking."""

from bisect import bisect_right
from dataclasses import dataclass

from evalstopd.core.model import JobView
from evalstopd.core.policies.ranking import ROUNDING_S, STEADY, Trend

# For so long a running job that has fallen into its queue ranks as those who wait there.
_FALLEN_S = 0.01


@dataclass(frozen=True, slots=True)
class Las:
    """Rank by queue of attained GPU-seconds, first come first within one; preempt. It needs no estimate.

    Source: Tiresias (NSDI 2019), 2D-LAS, as its public simulator has it: three queues with the limits 3,250
    and 7,200 GPU-seconds, no promotion; within a queue those who run stand before those who wait, but a job
    that has just fallen into it first competes with those who wait there.
    """

    first: float = 3250.0
    second: float = 7200.0
    preemptive: bool = True
    sees_evals: bool = False
    sees_running: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.first < self.second:
            raise ValueError(f"las: the limits must rise from above 0, not {self.first:g}, {self.second:g}")

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "las" if self == Las() else f"las:first={self.first:g},second={self.second:g}"

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the queue's number, 0 for a running job (1 for others), and the submit time."""
        del now_s
        queue = self._queue(job)
        ahead = job.running and self._falls_s(job, queue) == 0
        return (float(queue), 0.0 if ahead else 1.0, job.submitted_s)

    def trend(self, job: JobView) -> Trend:
        """Return that the key jumps when the job's GPU-seconds reach the limit of its queue."""
        queue = self._queue(job)
        falls_s = self._falls_s(job, queue)
        if falls_s > 0:
            return Trend(0.0, falls_s, jumps=True)
        if queue == len(self._limits):
            return STEADY
        return Trend(0.0, self._limits[queue] / max(1, job.gpus) - job.attained_s, jumps=True)

    @property
    def _limits(self) -> tuple[float, float]:
        return (self.first, self.second)

    def _queue(self, job: JobView) -> int:
        return bisect_right(self._limits, (job.attained_s + ROUNDING_S) * max(1, job.gpus))

    def _falls_s(self, job: JobView, queue: int) -> float:
        """Return for how much longer the job counts as just fallen into its queue."""
        if queue == 0:
            return 0.0
        since_s = job.attained_s - self._limits[queue - 1] / max(1, job.gpus)
        return max(0.0, _FALLEN_S - since_s) if since_s < _FALLEN_S - ROUNDING_S else 0.0
