"""Several series under one name: an eval of several datasets, or several processes that log, looks like declines."""

from collections.abc import Iterable
from itertools import pairwise

from evalstopd.core.curve import is_score
from evalstopd.core.guards import MIXED, UNTOLD, Caution
from evalstopd.core.model import Point

_FEWEST_STEPS = 3
_CAUTION = Caution(
    MIXED,
    "several values were logged at the same steps, one right after the other: they are of several datasets or "
    "processes, and cannot be told apart",
    refuse=True,
)


def mixed_caution(points: Iterable[Point]) -> Caution | None:
    """Return a caution where at least three steps, and half of all, have different values next to each other in time.

    A restarted job repeats its steps too, but one after the other: between two values of a step come other steps.
    """
    scores = [each for each in points if is_score(each.value)]
    steps = {each.step for each in scores}
    if len(steps) == len(scores):
        return None
    return _CAUTION if len(repeated(scores)) >= max(_FEWEST_STEPS, len(steps) / 2) else None


def untold_caution(why: str, *, chosen: bool) -> Caution:
    """Return the caution for a metric whose series were to be told apart and could not be.

    That is said even if it was said before that somebody must choose one, once somebody has `chosen`.
    """
    return Caution(UNTOLD if chosen else MIXED, f"several series under one name: {why}", refuse=True)


def repeated(points: Iterable[Point]) -> frozenset[int]:
    """Return the steps that have different values next to each other in time."""
    by_time = sorted((each for each in points if is_score(each.value)), key=lambda each: (each.timestamp_ms, each.step))
    return frozenset(
        one.step for one, next_ in pairwise(by_time) if one.step == next_.step and one.value != next_.value
    )
