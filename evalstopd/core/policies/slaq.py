"""SLAQ: elastic allocation by predicted loss reduction."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.core.estimate import speed_up, total_s
from evalstopd.core.model import Eval, JobView
from evalstopd.core.policies.greedy import Gain, check_round_s, greedy
from evalstopd.core.policies.ranking import Allocation


@dataclass(frozen=True, slots=True)
class Slaq:
    """Give each GPU to the job whose training loss it lowers most in the next round.

    Source: SLAQ (SoCC 2017); the loss is fitted by b + c / t through the last two observations; a job
    without two is taken to lose 1 over its estimate. Everybody gets a first GPU before anybody gets a second.
    """

    round_s: float = 60.0

    def __post_init__(self) -> None:
        check_round_s("slaq", self.round_s)

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "slaq"

    def allocate(self, jobs: Sequence[JobView], gpus: int, now_s: float) -> Allocation:
        """Divide the GPUs by predicted loss reduction."""
        del now_s
        given = greedy([self._gain(job) for job in jobs], gpus)
        return Allocation({job.job_id: n for job, n in zip(jobs, given, strict=True) if n})

    def _gain(self, job: JobView) -> Gain:
        fitted = _fit(job.evals)
        if fitted is None:
            pace = self.round_s / max(self.round_s, total_s(job))
            return lambda n: 1.0 + pace * speed_up(n)
        c, elapsed_s = fitted
        return lambda n: 1.0 + c / elapsed_s - c / (elapsed_s + self.round_s * speed_up(n))


def _fit(evals: tuple[Eval, ...]) -> tuple[float, float] | None:
    """Return (c, the last observation's time) of loss = b + c / t; None with fewer than two losses."""
    seen = [(e.elapsed_s, e.loss) for e in evals[-2:] if e.elapsed_s and e.loss is not None]
    if len(seen) < 2 or seen[0][0] >= seen[1][0]:
        return None
    (first_s, first), (last_s, last) = seen
    return max(0.0, (first - last) / (1 / first_s - 1 / last_s)), last_s
