"""Goodput: elastic allocation by marginal throughput times statistical efficiency (Pollux)."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.core.estimate import share_done, speed_up
from evalstopd.core.model import JobView
from evalstopd.core.policies.greedy import Gain, check_round_s, greedy
from evalstopd.core.policies.ranking import Allocation

# The gradient noise scale in GPUs, at the start of a run and at its end: it grows as training goes on.
# Our choice; the paper does not publish one.
NOISE_SCALE_FIRST = 8.0
NOISE_SCALE_LAST = 64.0


def efficiency(gpus: int, done: float) -> float:
    """Return the statistical efficiency phi / (phi + n) on `gpus` GPUs at the share `done` of the run."""
    phi = noise_scale(done)
    return phi / (phi + gpus)


def noise_scale(done: float) -> float:
    """Return phi, the gradient noise scale in GPUs, at the share `done` of the run."""
    return NOISE_SCALE_FIRST + (NOISE_SCALE_LAST - NOISE_SCALE_FIRST) * done


@dataclass(frozen=True, slots=True)
class Goodput:
    """Give each GPU to the job whose goodput, relative to its own on one GPU, it raises most.

    Source: Pollux (OSDI 2021), rounds of 60 s. Progress is judged by attained / estimate.
    """

    round_s: float = 60.0

    def __post_init__(self) -> None:
        check_round_s("goodput", self.round_s)

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "goodput"

    def allocate(self, jobs: Sequence[JobView], gpus: int, now_s: float) -> Allocation:
        """Divide the GPUs by marginal goodput."""
        del now_s
        given = greedy([_gain(job) for job in jobs], gpus)
        return Allocation({job.job_id: n for job, n in zip(jobs, given, strict=True) if n})


def _gain(job: JobView) -> Gain:
    phi = noise_scale(share_done(job))
    alone = phi / (phi + 1)
    return lambda n: speed_up(n) * (phi / (phi + n)) / alone
