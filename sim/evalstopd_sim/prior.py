"""The prior approach that the paper argues against: a job past its peak is put last instead of being stopped."""

from dataclasses import dataclass

from evalstopd.core.model import JobView
from evalstopd.core.policies import Policy, Trend


@dataclass(frozen=True, slots=True)
class PutLast:
    """Any base policy, with every job that has shown `after` declines behind all others."""

    base: Policy
    after: int

    @property
    def spec(self) -> str:
        """Return the base policy's text."""
        return self.base.spec

    @property
    def preemptive(self) -> bool:
        """Tell whether the base preempts."""
        return self.base.preemptive

    @property
    def sees_evals(self) -> bool:
        """Tell whether the base's keys follow evals."""
        return self.base.sees_evals

    @property
    def sees_running(self) -> bool:
        """Tell whether the base's keys follow starts."""
        return self.base.sees_running

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return 1 for a job past its peak, else 0, and the base's key."""
        return (float(job.declines >= self.after), *self.base.key(job, now_s))

    def trend(self, job: JobView) -> Trend:
        """Return the base's trend: the last number is the base's."""
        return self.base.trend(job)
