"""The guaranteed rule: false stops stay under alpha wherever its null holds, and what power is left is stated."""

import math
from collections.abc import Callable
from random import Random

import pytest

from evalstopd.core.detectors import Stop, detector, fold
from evalstopd.core.detectors.guaranteed import levels
from evalstopd.core.model import Eval, JobView

JOB = JobView("1", 0.0, 1)
Maker = Callable[[Random, int], list[float]]


def share(stream: Random, items: int, mean: float) -> float:
    return sum(stream.random() < mean for _ in range(items)) / items


def stopped(rule: str, maker: Maker, evals: int, runs: int, seed: int = 1) -> float:
    stream, made = Random(seed), detector(rule)
    hits = 0
    for _ in range(runs):
        points = [Eval(i, score) for i, score in enumerate(maker(stream, evals))]
        hits += any(isinstance(each, Stop) for each in fold(made, JOB, points))
    return hits / runs


def flat(stream: Random, evals: int) -> list[float]:
    return [share(stream, 20, 0.6) for _ in range(evals)]


def rising(stream: Random, evals: int) -> list[float]:
    return [share(stream, 20, 0.2 + 0.6 * i / evals) for i in range(evals)]


def stairs_by_the_past(stream: Random, evals: int) -> list[float]:
    """The mean may depend on what was seen, as long as it never falls: it rises after each lucky eval."""
    scores, mean = [], 0.3
    for _ in range(evals):
        scores.append(share(stream, 20, mean))
        mean = min(0.7, mean + 0.05) if scores[-1] > mean else mean
    return scores


def all_or_nothing(stream: Random, evals: int) -> list[float]:
    """The noisiest score there is between 0 and 1: a single item."""
    return [float(stream.random() < 0.5) for _ in range(evals)]


@pytest.mark.rates
@pytest.mark.parametrize(
    ("maker", "items"), [(flat, 20), (rising, 20), (stairs_by_the_past, 20), (all_or_nothing, 1), (flat, 1)]
)
@pytest.mark.parametrize("alpha", [0.2])
def test_false_stops_stay_under_alpha_where_the_null_holds(maker: Maker, items: int, alpha: float) -> None:
    assert stopped(f"guaranteed:alpha={alpha},items={items}", maker, 100, 60) <= alpha


@pytest.mark.rates
def test_a_claim_of_more_items_than_there_are_breaks_the_bound() -> None:
    """The check on the check: with its null broken, the same measurement does exceed alpha."""
    assert stopped("guaranteed:alpha=0.2,items=400", flat, 60, 60) > 0.2


@pytest.mark.rates
@pytest.mark.parametrize(
    ("items", "drop", "low", "high"), [(50, 0.3, 0.9, 1.0), (200, 0.2, 0.9, 1.0), (1, 0.3, 0.0, 0.05)]
)
def test_power_on_twenty_evals_is_as_stated(items: int, drop: float, low: float, high: float) -> None:
    """From .8 by `drop` half way; a score of which nothing but its bounds is known proves nothing so soon."""

    def falling(stream: Random, evals: int) -> list[float]:
        return [share(stream, items, 0.8 - drop * (i >= evals // 2)) for i in range(evals)]

    assert low <= stopped(f"guaranteed:items={items}", falling, 20, 60) <= high


def test_each_bet_is_fair_at_its_level_and_loses_on_the_wrong_side() -> None:
    """Mean gain of a bet under a share of 0 or 1 items: at most 1 wherever the mean is on the null's side."""
    for level in levels(200):
        for bets, means in ((level.above, (0.2, 0.6, 1.0)), (level.below, (1.0, 1.3, 2.0))):
            for bet in bets:
                for factor in means:
                    mean = min(1.0, level.at * factor)
                    gain = mean * math.exp(bet.one) + (1 - mean) * math.exp(bet.zero)
                    assert gain <= 1 + 1e-9


def test_a_score_out_of_bounds_ends_the_proof_for_good() -> None:
    made = detector("guaranteed:items=1000")
    falling = [0.9] * 10 + [0.1] * 10

    assert isinstance(fold(made, JOB, [Eval(i, s) for i, s in enumerate(falling)])[-1], Stop)
    assert not any(isinstance(v, Stop) for v in fold(made, JOB, [Eval(i, s) for i, s in enumerate([1.5, *falling])]))
