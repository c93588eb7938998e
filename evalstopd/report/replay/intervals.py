"""Confidence intervals: no rate is shown without one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z = 1.959964  # two-sided 95 %
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval; None where there is nothing to estimate it from."""

    value: float | None
    low: float | None = None
    high: float | None = None
    of: int = 0


def rate(hits: int, of: int) -> Estimate:
    """Return hits / of with Wilson's score interval (Wilson 1927)."""
    if of == 0:
        return Estimate(None)
    share, weight = hits / of, _Z * _Z / of
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * math.sqrt(share * (1 - share) / of + weight / (4 * of)) / (1 + weight)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half), of)


def exact(hits: int, of: int) -> Estimate:
    """Return hits / of with its exact interval (Clopper and Pearson 1934): never too narrow, however few there are."""
    if of == 0:
        return Estimate(None)
    low = 0.0 if hits == 0 else 1 - _highest(of - hits, of)
    high = 1.0 if hits == of else _highest(hits, of)
    return Estimate(hits / of, low, high, of)


def _highest(hits: int, of: int) -> float:
    """Return the largest chance under which so few hits, or fewer, still have a probability of 2.5 %."""
    low, high = hits / of, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(hits, of, middle) > _TAIL else (low, middle)
    return high


def _at_most(hits: int, of: int, chance: float) -> float:
    """Return the probability of at most so many hits."""
    whole = math.lgamma(of + 1)
    return math.fsum(
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * math.log(chance) + (of - k) * math.log1p(-chance)
        )
        for k in range(hits + 1)
    )


def mean(values: Sequence[float]) -> Estimate:
    """Return the mean with its normal interval."""
    of = len(values)
    if of == 0:
        return Estimate(None)
    centre = math.fsum(values) / of
    variance = math.fsum((value - centre) ** 2 for value in values) / max(1, of - 1)
    half = _Z * math.sqrt(variance / of)
    return Estimate(centre, centre - half, centre + half, of)


def precision(recall: Estimate, fpr: Estimate, base_rate: float) -> Estimate:
    """Return the precision at a base rate of positives; its ends pair the worst recall with the worst FPR."""
    return Estimate(
        _precision(recall.value, fpr.value, base_rate),
        _precision(recall.low, fpr.high, base_rate),
        _precision(recall.high, fpr.low, base_rate),
    )


def _precision(recall: float | None, fpr: float | None, base_rate: float) -> float | None:
    if recall is None or fpr is None:
        return None
    right, wrong = recall * base_rate, fpr * (1 - base_rate)
    return right / (right + wrong) if right + wrong > 0 else None
