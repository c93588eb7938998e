"""Which checkpoint of a stopped run to keep: not the luckiest eval, the best stretch."""

from collections.abc import Collection, Sequence

from evalstopd.core.model import Eval, Mode

_SIDE = 1  # evals on either side that a smoothed score takes in


def best_smoothed(evals: Sequence[Eval], mode: Mode, steps: Collection[int] | None = None) -> Eval | None:
    """Return the eval with the best smoothed score, the earliest among equals, of those at `steps` if given.

    The smoothed score is the mean of the eval and its neighbours, one on either side; at an end it lacks one, and
    what it lacks is counted as the next worse score of the three, so that a lucky last eval is not preferred.
    """
    found: tuple[float, Eval] | None = None
    for index, each in enumerate(evals):
        if steps is not None and each.step not in steps:
            continue
        score = smoothed(evals, index, mode)
        if found is None or mode.better(score, found[0]):
            found = score, each
    return found[1] if found else None


def smoothed(evals: Sequence[Eval], index: int, mode: Mode) -> float:
    """Return the smoothed score of the eval at an index, in the unit of the score."""
    near = [each.score for each in evals[max(0, index - _SIDE) : index + _SIDE + 1]]
    worst = min(near) if mode is Mode.MAX else max(near)
    near += [worst] * (2 * _SIDE + 1 - len(near))
    return sum(near) / len(near)


def k_before(evals: Sequence[Eval], count: int) -> Eval | None:
    """Return the eval `count` evals before the last: the paper's choice, for its preset only."""
    at = len(evals) - 1 - count
    return evals[at] if at >= 0 else None
