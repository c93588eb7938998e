"""How noisy an eval is: from what was logged, from the number of items, from the curve itself; the larger counts."""

import math
from collections.abc import Sequence
from operator import sub

from evalstopd.core.curve import is_score
from evalstopd.core.model import Eval

_MAD_TO_SD = 1.4826  # of a Gaussian
_SECOND_DIFFERENCE = math.sqrt(6)  # its sd in units of the noise: 1, -2, 1
_FEWEST = 4  # scores that tell anything of their noise
_PRIOR_SHARE = 0.11  # of a curve's 5-95 % range: the median noise of 1,633 real curves, a factor of three either way
_SEEN_AT = 3.0  # standard errors between two means before a fall counts as seen


def from_items(score: float, items: int) -> float:
    """Return the standard error of an accuracy in [0, 1] over `items` items.

    sqrt(p (1 - p) / items) with p = (x + 1) / (items + 2), x the right answers, so that 0 and 1 have an error too.
    Raises ValueError for a score that is no share or without items.
    """
    if not 0 <= score <= 1 or items < 1:
        raise ValueError(f"an accuracy in [0, 1] over one item or more is needed, not {score} over {items}")
    return _error_of(score, items)


def items_behind(score: float, error: float) -> float:
    """Return the number of items, from 1 to 1e12, whose error `from_items` would give; the inverse of it."""
    low, high = 0.0, 12.0  # powers of ten; the error only falls with the number of items
    for _ in range(40):
        middle_power = (low + high) / 2
        more = _error_of(score, 10**middle_power) > error
        low, high = (middle_power, high) if more else (low, middle_power)
    return 10**high


def _error_of(score: float, items: float) -> float:
    likely = (score * items + 1) / (items + 2)
    return math.sqrt(likely * (1 - likely) / items)


def from_curve(scores: Sequence[float]) -> float:
    """Return the noise of evenly spaced scores, in their unit; 0 where three scores or fewer tell nothing.

    1.4826 x MAD of the second differences / sqrt 6: a trend leaves it alone, and so do a few glitches. At least
    half the smallest non-zero step, so that a coarse scale (accuracy on few items) does not look free of noise.
    On 6 scores it is loose by a factor of 2; under AR(1) noise of .5 it sees two thirds of the truth.
    """
    if len(scores) < _FEWEST:
        return 0.0
    steps = list(map(sub, scores[1:], scores))
    shown = _from_steps(steps)
    # The smallest step is not larger than the first, which mostly says enough.
    return shown if 0 < abs(steps[0]) <= 2 * shown else max(shown, _half_a_step(steps))


def from_bends(scores: Sequence[float]) -> float:
    """Return the same as `from_curve`, but with the second differences' own size for their spread round a middle.

    On a smooth curve their middle is near 0, and not to estimate it makes few scores tell more: of 8 flat scores the
    noise comes out right in the (geometric) mean, where `from_curve` is 15 % low, and its spread is .50 for .58. A
    curve that bends throughout looks noisier than it is.
    """
    if len(scores) < _FEWEST:
        return 0.0
    steps = list(map(sub, scores[1:], scores))
    return max(_sized(steps), _half_a_step(steps))


def of_evals(evals: Sequence[Eval]) -> float:
    """Return the noise of a curve's evals, in the unit of the score: the larger of what is known and is shown.

    Known: standard errors, logged or from numbers of items. Shown: the curve's own, as `with_prior` has it.
    """
    logged = [each.stderr for each in evals if each.stderr is not None and is_score(each.stderr) and each.stderr > 0]
    told = math.sqrt(sum(error * error for error in logged) / len(logged)) if logged else 0.0
    return max(told, with_prior([each.score for each in evals]))


def with_prior(scores: Sequence[float]) -> float:
    """Return the noise that scores show, drawn towards what is usual; 0 where they show none.

    The prior is a noise of .11 of the 5-95 % range and weighs as much as one second difference: of so different
    runs it tells little, but under eight evals the curve tells less than it seems.
    """
    shown = from_curve(scores)
    if shown <= 0:
        return 0.0
    usual, seen = _PRIOR_SHARE * spread(scores) or shown, len(scores) - 2
    return math.exp((math.log(usual) + seen * math.log(shown)) / (1 + seen))


def unfloored(scores: Sequence[float]) -> float:
    """Return the same without the floor of half a step, for scores that are means and have no scale of their own."""
    return _from_steps(list(map(sub, scores[1:], scores))) if len(scores) >= _FEWEST else 0.0


def unfloored_bends(scores: Sequence[float]) -> float:
    """Return `from_bends` without its floor."""
    return _sized(list(map(sub, scores[1:], scores))) if len(scores) >= _FEWEST else 0.0


def _half_a_step(steps: list[float]) -> float:
    """Return half the smallest step that is none of 0; 0 without one."""
    return min(filter(None, map(abs, steps)), default=0.0) / 2


def _sized(steps: list[float]) -> float:
    return _MAD_TO_SD / _SECOND_DIFFERENCE * middle(list(map(abs, map(sub, steps[1:], steps))))


def _from_steps(steps: list[float]) -> float:
    bends = list(map(sub, steps[1:], steps))
    centre = middle(bends)
    return _MAD_TO_SD / _SECOND_DIFFERENCE * middle([abs(bend - centre) for bend in bends])


def middle(values: Sequence[float]) -> float:
    """Return the median of a few values (the standard library's is too slow for a rule's inner loop)."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def evals_to_see(fall: float, noise: float) -> int:
    """Return about how many evals after a fall it takes until two means differ by three standard errors."""
    if fall <= 0 or noise < 0:
        raise ValueError(f"a fall above 0 and a noise of 0 or more are needed, not {fall} and {noise}")
    return max(1, math.ceil(2 * (_SEEN_AT * noise / fall) ** 2))


def sentence(noise: float, fall: float) -> str:
    """Return what an owner is told of the noise of their evals."""
    evals = evals_to_see(fall, noise)
    return f"this eval's noise is {noise:.3g}; a fall of {fall:.3g} needs about {evals} evals to be seen"


def spread(scores: Sequence[float]) -> float:
    """Return the range from the 5th to the 95th percentile."""
    ordered = sorted(scores)
    return quantile(ordered, 0.95) - quantile(ordered, 0.05)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated linearly."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
