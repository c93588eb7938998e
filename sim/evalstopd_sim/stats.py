"""Paired comparisons over seeds: means, confidence intervals and p-values of Student's t, standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, lgamma, log, sqrt

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its 95 % confidence interval, and the two-sided p-value of the mean being 0.

    The interval is unbounded for fewer than two values.
    """

    mean: float
    low: float
    high: float
    p_value: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values with its interval and one-sample t-test (on differences: paired)."""
    n = len(values)
    middle = sum(values) / n
    if n < 2:
        return Estimate(middle, -inf, inf, None)
    error = sqrt(sum((value - middle) ** 2 for value in values) / (n - 1) / n)
    if error == 0:
        return Estimate(middle, middle, middle, 1.0 if middle == 0 else 0.0)
    margin = t_quantile(CONFIDENCE, n - 1) * error
    return Estimate(middle, middle - margin, middle + margin, t_two_sided(middle / error, n - 1))


def t_two_sided(t: float, freedom: int) -> float:
    """Return P(|T| > |t|) for Student's t: the regularised incomplete beta I_x(v/2, 1/2), x = v / (v + t^2)."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@cache
def t_quantile(confidence: float, freedom: int) -> float:
    """Return the t with P(|T| <= t) = confidence, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if 1 - t_two_sided(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta by Lentz's method."""
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _apart(1 + term * d)
            c = _apart(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _apart(value: float) -> float:
    """Keep a divisor away from 0."""
    return value if abs(value) > 1e-300 else 1e-300
