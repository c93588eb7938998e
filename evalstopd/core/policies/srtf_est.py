"""Shortest remaining time first, by the user's estimate."""

from dataclasses import dataclass

from evalstopd.core.estimate import FLOOR_SHARE, remaining_s, total_s
from evalstopd.core.model import JobView
from evalstopd.core.policies.ranking import ROUNDING_S, STEADY, Trend


@dataclass(frozen=True, slots=True)
class SrtfEst:
    """Rank jobs by estimated remaining time, max(estimate - attained, floor x estimate); preempt.

    The paper's base SRTF-Est. `floor` is the share of the estimate that a job past it still counts for.
    """

    floor: float = FLOOR_SHARE
    preemptive: bool = True
    sees_evals: bool = False
    sees_running: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= 1:
            raise ValueError(f"srtf-est: floor must be a share between 0 and 1, not {self.floor:g}")

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "srtf-est" if self.floor == FLOOR_SHARE else f"srtf-est:floor={self.floor:g}"

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the estimated remaining seconds."""
        del now_s
        return (remaining_s(job, self.floor),)

    def trend(self, job: JobView) -> Trend:
        """Return that the remaining time falls second by second until it reaches the floor."""
        if job.estimate_s is None:
            return STEADY
        left = (1 - self.floor) * total_s(job) - job.attained_s
        return Trend(-1.0, left) if left > ROUNDING_S else STEADY
