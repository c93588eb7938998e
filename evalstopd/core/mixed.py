"""Several series under one name: an eval of several datasets, or several processes that log, looks like declines."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from evalstopd.core.again import Kind, Return, in_time, returns
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
_LAGGING = Caution(
    MIXED,
    "values for earlier steps, other than those that were there, came between values for later steps: they are of a "
    "second dataset or process that lags behind, and cannot be told apart",
    refuse=True,
)


def mixed_caution(points: Iterable[Point]) -> Caution | None:
    """Return a caution where at least three steps, and half of all, have different values next to each other in time.

    A restarted job repeats its steps too, but one after the other: between two values of a step come other steps. Of a
    series that lags behind, another's values for later steps come in between: then there is a caution as well.
    """
    scores = [each for each in points if is_score(each.value)]
    steps = {each.step for each in scores}
    if len(steps) == len(scores):
        return None
    if len(repeated(scores)) >= max(_FEWEST_STEPS, len(steps) / 2):
        return _CAUTION
    return _LAGGING if _lags(in_time(scores)) else None


def _lags(ordered: Sequence[Point]) -> bool:
    """Tell whether a series lags behind another: at three steps, or at one, and it may have only begun.

    A value that was corrected late is the only one: three steps later nothing more has come.
    """
    apart = [back for back in returns(ordered) if back.kind is Kind.APART]
    return len(apart) >= _FEWEST_STEPS or (bool(apart) and _steps_after(ordered, apart[-1]) < _FEWEST_STEPS)


def _steps_after(ordered: Sequence[Point], back: Return) -> int:
    return len({each.step for each in ordered[back.end :]})


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
