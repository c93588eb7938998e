"""Values that were all logged at one step: one eval for ever, which nothing can fall from, and nobody is told."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from evalstopd.core.curve import is_score
from evalstopd.core.guards import Caution
from evalstopd.core.model import Point

_CODE = "one-step"
_FEWEST = 4
_APART_MS = 1000


def stepless_caution(points: Iterable[Point]) -> Caution | None:
    """Return a caution where a run has at least four evals, all at one step; 0 is that of who names none.

    It refuses nothing: one eval stops no job. What several processes or datasets log within a second is no eval more,
    and a second run that begins at the same step is none either.
    """
    scores = [each for each in points if is_score(each.value)]
    if len({(each.run_id, each.step) for each in scores}) != 1 or _times(scores) < _FEWEST:
        return None
    text = (
        f"all {len(scores)} values were logged at step {scores[0].step}: that is one eval, by which nothing is judged"
    )
    return Caution(_CODE, f"{text}; log them with step=...", refuse=False)


def _times(scores: Sequence[Point]) -> int:
    """Return how often something was logged, with a second between."""
    stamps = sorted(each.timestamp_ms for each in scores)
    return 1 + sum(later - earlier >= _APART_MS for earlier, later in pairwise(stamps))
