"""Which checkpoint a stop keeps, and how much true score that choice gives away."""

from operator import add

from evalstopd_sim.truth import TrueJob

CHOICES = ("best eval", "k evals before the trigger", "best 3-eval mean")


def regrets(job: TrueJob, trigger: int, declines: int) -> tuple[float, float, float]:
    """Return for each of CHOICES: best true level up to the trigger minus that of the chosen checkpoint."""
    seen, levels = job.scores[: trigger + 1], job.levels
    top = max(levels[: trigger + 1])
    best, before = seen.index(max(seen)), max(0, trigger - declines)
    return (top - levels[best], top - levels[before], top - levels[_best_stretch(seen)])


def _best_stretch(seen: tuple[float, ...]) -> int:
    """Return the middle of the three successive evals with the best mean."""
    if len(seen) < 3:
        return seen.index(max(seen))
    sums = list(map(add, map(add, seen, seen[1:]), seen[2:]))
    return sums.index(max(sums)) + 1
