"""Which checkpoint a stop keeps, and how much true score that choice gives away."""

from evalstopd_sim.truth import TrueJob

CHOICES = ("best eval", "k evals before the trigger", "best 3-eval mean")


def regrets(job: TrueJob, trigger: int, declines: int) -> tuple[float, float, float]:
    """Return for each of CHOICES: best true level up to the trigger minus that of the chosen checkpoint."""
    seen = job.scores[: trigger + 1]
    top = max(job.levels[: trigger + 1])
    chosen = (seen.index(max(seen)), max(0, trigger - declines), _best_stretch(seen))
    return (top - job.levels[chosen[0]], top - job.levels[chosen[1]], top - job.levels[chosen[2]])


def _best_stretch(seen: tuple[float, ...]) -> int:
    """Return the middle of the three successive evals with the best mean."""
    if len(seen) < 3:
        return seen.index(max(seen))
    sums = [seen[i - 1] + seen[i] + seen[i + 1] for i in range(1, len(seen) - 1)]
    return sums.index(max(sums)) + 1
