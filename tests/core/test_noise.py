"""How noisy an eval is, and what its owner is told."""

import math
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.model import Eval
from evalstopd.core.noise import (
    evals_to_see,
    from_bends,
    from_curve,
    from_items,
    items_behind,
    middle,
    of_evals,
    quantile,
    sentence,
    spread,
    unfloored,
    unfloored_bends,
    with_prior,
)


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


BEND = 1.4826 / math.sqrt(6)


def test_noise_by_hand() -> None:
    """Steps 1, -1, 1, 0 and bends -2, 2, -1: round their middle -1 they lie 1, 3, 0; their own sizes are 2, 2, 1."""
    scores = [0.0, 1.0, 0.0, 1.0, 1.0]

    assert from_curve(scores) == unfloored(scores) == pytest.approx(BEND)
    assert from_bends(scores) == unfloored_bends(scores) == pytest.approx(2 * BEND)


@pytest.mark.parametrize("estimate", [from_curve, from_bends])
def test_the_floor_is_half_the_smallest_step(estimate: Callable[[list[float]], float]) -> None:
    assert estimate([0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) == 1.0
    assert estimate([0.0, 0.0, 0.0, 0.0]) == 0.0


@pytest.mark.parametrize("estimate", [unfloored, unfloored_bends])
def test_means_have_no_floor(estimate: Callable[[list[float]], float]) -> None:
    assert estimate([0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) == 0.0


@pytest.mark.parametrize("estimate", [from_curve, from_bends, unfloored, unfloored_bends])
def test_four_scores_tell_something_and_three_nothing(estimate: Callable[[list[float]], float]) -> None:
    assert estimate([0.0, 1.0, 0.0, 1.0]) == pytest.approx(2 * BEND)
    assert [estimate(few) for few in ([0.0, 1.0, 0.0], [0.0, 1.0], [])] == [0.0, 0.0, 0.0]


def test_the_prior_by_hand() -> None:
    """The curve shows 1.2106, the range of 1 says .11; two second differences weigh twice the prior."""
    assert with_prior([0.0, 1.0, 0.0, 1.0]) == pytest.approx((0.11 * (2 * BEND) ** 2) ** (1 / 3))
    assert with_prior([0.0] * 30 + [1.0] + [0.0] * 30) == pytest.approx(0.5), "a range of 0 says nothing"


def test_quantiles_lie_between_their_neighbours_in_proportion() -> None:
    ordered = [10.0, 20.0, 40.0, 80.0]

    assert [quantile(ordered, share) for share in (0.0, 0.5, 5 / 6, 1.0)] == pytest.approx([10.0, 30.0, 60.0, 80.0])
    assert quantile([7.0], 0.3) == 7.0
    assert spread([float(n) for n in range(200, 99, -1)]) == pytest.approx(90.0)


def test_the_middle_of_an_even_number_lies_between_two() -> None:
    assert middle([9.0, 1.0, 5.0]) == 5.0
    assert middle([9.0, 1.0, 5.0, 2.0]) == 3.5


def test_what_was_logged_counts_where_it_is_more_than_the_curve_shows() -> None:
    """The mean of squares: errors of 3 and 4 are one of 3.54. What is no error (0, negative, not finite) is none."""
    scores = [0.0, 1.0, 0.0, 1.0]
    bare = [Eval(step, score) for step, score in enumerate(scores)]
    shown = with_prior(scores)

    assert of_evals(bare) == shown
    odd = [each._replace(stderr=bad) for each, bad in zip(bare, (None, 0.0, -9.0, math.inf), strict=True)]
    assert of_evals(odd) == shown
    assert of_evals([bare[0]._replace(stderr=3.0), *odd[1:3], bare[3]._replace(stderr=4.0)]) == math.sqrt(12.5)
    assert of_evals([bare[0]._replace(stderr=0.01), *bare[1:]]) == shown


def test_the_number_of_items_is_looked_for_from_one_to_a_million_millions() -> None:
    assert items_behind(0.5, 9.0) == pytest.approx(1.0)
    assert items_behind(0.5, 0.0) == pytest.approx(1e12)


def test_one_item_is_enough_for_an_error_and_the_message_says_what_is_not() -> None:
    """One right answer of one: p = 2 / 3."""
    assert from_items(1.0, 1) == pytest.approx(math.sqrt(2) / 3)
    assert from_items(0.0, 1) == pytest.approx(math.sqrt(2) / 3)
    with pytest.raises(ValueError, match=r"not 0\.5 over 0$"):
        from_items(0.5, 0)


def test_how_many_evals_a_fall_takes_to_be_seen() -> None:
    """2 (3 s / fall)^2, rounded up."""
    assert [evals_to_see(fall, 1.0) for fall in (1.0, 3.0, 6.0)] == [18, 2, 1]
    with pytest.raises(ValueError, match="not 1 and -1"):
        evals_to_see(1, -1)


def test_an_error_below_one_counts_as_any_other() -> None:
    assert of_evals([Eval(step, step / 1000, 0.5) for step in range(4)]) == 0.5


def test_half_the_smallest_step_counts_where_the_bends_show_a_little_less() -> None:
    """Steps of 1 and 1.7 in turns bend by .7, up and down: a noise of .42 by these alone."""
    scores = [0.0, 1.0, 2.7, 3.7, 5.4, 6.4, 8.1, 9.1]

    assert unfloored(scores) == pytest.approx(0.4237, abs=1e-4)
    assert from_curve(scores) == pytest.approx(0.5)
