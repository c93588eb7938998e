"""First in, first out: the order of submission."""

from dataclasses import dataclass

from evalstopd.core.model import JobView
from evalstopd.core.policies.ranking import STEADY, Trend


@dataclass(frozen=True, slots=True)
class Fifo:
    """Rank jobs by submit time; never preempt (the paper's base FIFO)."""

    preemptive: bool = False
    sees_evals: bool = False
    sees_running: bool = False

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "fifo"

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the job's submit time."""
        del now_s
        return (job.submitted_s,)

    def trend(self, job: JobView) -> Trend:
        """Return that the key never moves."""
        del job
        return STEADY
