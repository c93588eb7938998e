"""Shortest job first, by the user's estimate."""

from dataclasses import dataclass

from evalstopd.core.estimate import total_s
from evalstopd.core.model import JobView
from evalstopd.core.policies.ranking import STEADY, Trend


@dataclass(frozen=True, slots=True)
class SjfEst:
    """Rank jobs by their estimated duration; never preempt (the paper's base SJF-Est)."""

    preemptive: bool = False
    sees_evals: bool = False
    sees_running: bool = False

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "sjf-est"

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the estimate in seconds."""
        del now_s
        return (total_s(job),)

    def trend(self, job: JobView) -> Trend:
        """Return that the key never moves."""
        del job
        return STEADY
