"""LossAware: the job whose training loss fell fastest of late goes first."""

from dataclasses import dataclass

from evalstopd.core.model import JobView
from evalstopd.core.policies.ranking import STEADY, Trend


@dataclass(frozen=True, slots=True)
class LossAware:
    """Rank by the most recent loss reduction per second, jobs without one first; preempt.

    The paper's SLAQ-like base. Off by default on live clusters: users write the losses it ranks on.
    """

    preemptive: bool = True
    sees_evals: bool = True
    sees_running: bool = False

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "loss-aware"

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return (0,) for a job without a loss reduction yet, else 1 and minus the reduction per second."""
        del now_s
        return (0.0, 0.0) if job.loss_drop_per_s is None else (1.0, -job.loss_drop_per_s)

    def trend(self, job: JobView) -> Trend:
        """Return that the key moves only when a new loss is seen."""
        del job
        return STEADY
