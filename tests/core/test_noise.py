"""How noisy an eval is, and what its owner is told."""

import math
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.noise import evals_to_see, from_bends, from_curve, from_items, sentence, spread, with_prior


def test_an_accuracy_of_one_still_has_an_error() -> None:
    assert from_items(1.0, 98) == pytest.approx(math.sqrt(0.99 * 0.01 / 98))
    assert from_items(0.5, 10_000) == pytest.approx(0.005, rel=0.01)


@pytest.mark.parametrize(("score", "items"), [(1.2, 10), (-0.1, 10), (0.5, 0)])
def test_what_is_no_accuracy_is_refused(score: float, items: int) -> None:
    with pytest.raises(ValueError, match="accuracy"):
        from_items(score, items)


def test_the_curve_tells_its_noise_whatever_its_trend() -> None:
    stream = Random(1)
    found = [from_curve([i * 0.3 + stream.gauss(0, 0.1) for i in range(40)]) for _ in range(300)]

    assert sum(found) / len(found) == pytest.approx(0.1, rel=0.07)


def test_one_glitch_hardly_changes_it() -> None:
    scores = [Random(i).gauss(0, 0.1) for i in range(40)]

    assert from_curve([*scores[:20], 50.0, *scores[21:]]) < 1.5 * from_curve(scores)


def test_a_coarse_scale_does_not_look_free_of_noise() -> None:
    assert from_curve([0.5] * 9 + [0.51] + [0.5] * 9) == pytest.approx(0.005)


def test_three_scores_or_a_constant_tell_nothing() -> None:
    assert from_curve([1.0, 2.0, 0.0]) == 0.0
    assert from_curve([0.7] * 30) == 0.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=40))
def test_it_is_never_negative(scores: list[float]) -> None:
    assert from_curve(scores) >= 0


def test_the_owner_is_told_what_can_be_seen() -> None:
    assert sentence(0.02, 0.05) == "this eval's noise is 0.02; a fall of 0.05 needs about 3 evals to be seen"
    assert evals_to_see(1.0, 0.0) == 1
    with pytest.raises(ValueError, match="fall above 0"):
        evals_to_see(0.0, 0.1)


def test_after_so_many_evals_a_fall_is_mostly_seen() -> None:
    """Two means of that many evals differ by two standard errors or more in most draws, by nothing in few."""
    stream, fall, noise = Random(2), 0.05, 0.04
    count = evals_to_see(fall, noise)
    error = noise * math.sqrt(2 / count)

    def differences(by: float) -> list[float]:
        def mean(level: float) -> float:
            return sum(stream.gauss(level, noise) for _ in range(count)) / count

        return [mean(by) - mean(0) for _ in range(500)]

    assert sum(d > 2 * error for d in differences(fall)) > 400
    assert sum(d > 2 * error for d in differences(0)) < 40


@pytest.mark.parametrize("count", [4, 8, 40])
def test_the_prior_weighs_as_much_as_one_second_difference(count: int) -> None:
    stream = Random(count)
    scores = [stream.gauss(0, 0.01) for _ in range(count - 1)] + [1.0]
    shown, usual = from_curve(scores), 0.11 * spread(scores)
    drawn = math.log(with_prior(scores) / shown) / math.log(usual / shown)

    assert drawn == pytest.approx(1 / (count - 1))
    assert with_prior([0.7] * 30) == with_prior([1.0, 2.0, 0.0]) == 0.0


def test_the_bends_own_size_is_not_low_on_few_scores() -> None:
    stream = Random(5)
    runs = [[stream.gauss(0, 1) for _ in range(8)] for _ in range(1500)]

    def mean_log(estimate: Callable[[list[float]], float]) -> float:
        return sum(math.log(estimate(run)) for run in runs) / len(runs)

    assert mean_log(from_bends) == pytest.approx(0.0, abs=0.06)
    assert mean_log(from_curve) < -0.1
    assert from_bends([1.0, 2.0, 0.0]) == 0.0
