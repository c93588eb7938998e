"""StopAt as the information frontier allows it: stop at a fixed share of the user's estimate."""

from dataclasses import dataclass

from evalstopd.core.detectors.verdict import KEEP_GOING, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView


@dataclass(frozen=True, slots=True)
class ElapsedFraction(Detector):
    """Stop at the first eval after `share` of the estimated duration, whatever the score.

    The paper's competitor StopAt-0.65, on estimates: the exact progress it names is hidden from every
    scheduler. A job without an estimate, and an eval of unknown running time, are let go on.
    """

    share: float = 0.65

    def __post_init__(self) -> None:
        if not 0 < self.share < float("inf"):
            raise ValueError(f"elapsed-fraction: share must be above 0, not {self.share:g}")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        return f"elapsed-fraction:share={self.share:g}"

    def start(self, job: JobView) -> float | None:
        """Return the running time in seconds from which the rule stops; None without an estimate."""
        return None if job.estimate_s is None else self.share * job.estimate_s

    def step(self, state: float | None, point: Eval) -> tuple[float | None, Verdict]:
        """Take one eval and compare its running time with the limit."""
        if state is None or point.elapsed_s is None or point.elapsed_s < state:
            return state, KEEP_GOING
        return state, Stop(f"{self.share:.0%} of the estimated duration is over")
