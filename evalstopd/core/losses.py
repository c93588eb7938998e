"""How fast a training loss fell of late, from what its run logged."""

from collections.abc import Sequence
from math import isfinite

from evalstopd.core.model import Point


def drop_per_s(points: Sequence[Point]) -> float | None:
    """Return the loss reduction per second between the last two observations, by step.

    None for fewer than two, where no time passed between them, or for a rate that is no number: whoever writes such
    ranks as one whose loss is not known.
    """
    finite = sorted((each for each in points if isfinite(each.value)), key=lambda each: (each.step, each.timestamp_ms))
    if len(finite) < 2:
        return None
    before, last = finite[-2:]
    passed_s = (last.timestamp_ms - before.timestamp_ms) / 1000
    drop = (before.value - last.value) / passed_s if passed_s > 0 else float("nan")
    return drop if isfinite(drop) else None
