"""Where the demo's rule would stop a finished curve: how seeds are surveyed, not how jobs are stopped."""

from collections.abc import Sequence
from itertools import pairwise


def stop_eval(scores: Sequence[float], k: int, min_delta: float) -> int | None:
    """Return the eval (from 1) that completes k successive declines of more than min_delta, if any."""
    declines = 0
    for number, (before, score) in enumerate(pairwise(scores), start=2):
        declines = declines + 1 if score < before - min_delta else 0
        if declines == k:
            return number
    return None
