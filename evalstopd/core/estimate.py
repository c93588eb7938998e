"""Estimates of a job's length from what may be seen: the user's own figure and the time it has run."""

from math import inf

from evalstopd.core.model import JobView

# Past its estimate a job counts as having this share of the estimate still to run. What is assumed here moves
# the mean completion time of SRTF more than the paper's claimed gain, so every table prints it.
FLOOR_SHARE = 0.02


def total_s(job: JobView) -> float:
    """Return the user's estimate in seconds; without one the job counts as endless."""
    return inf if job.estimate_s is None else job.estimate_s


def remaining_s(job: JobView, floor_share: float = FLOOR_SHARE) -> float:
    """Return the estimated remaining seconds: max(estimate - attained, floor_share x estimate)."""
    total = inf if job.estimate_s is None else job.estimate_s
    left, floor = total - job.attained_s, floor_share * total
    return max(left, floor)


def share_done(job: JobView) -> float:
    """Return attained / estimate, cut to [0, 1]; 0 without an estimate."""
    total = total_s(job)
    return min(1.0, job.attained_s / total) if total > 0 else 1.0


# Amdahl-like scaling: what each further GPU costs in efficiency. A job's true figure is hidden; elastic
# policies plan with the middle of the range it is drawn from.
TYPICAL_SCALING = 0.06


def speed_up(gpus: int, scaling: float = TYPICAL_SCALING) -> float:
    """Return the speed on `gpus` GPUs relative to one: n / (1 + a (n - 1))."""
    return gpus / (1 + scaling * (gpus - 1)) if gpus > 0 else 0.0
