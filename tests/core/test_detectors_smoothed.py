"""Declines of the smoothed score: how often in a row, how far below the best."""

import pytest

from evalstopd.core.detectors import Declining, KeepGoing, Stop, Verdict, detector, fold
from evalstopd.core.model import Eval, JobView, Mode

JOB = JobView("1", 0.0, 1)


def verdicts(rule: str, *scores: float) -> tuple[Verdict, ...]:
    return fold(detector(rule), JOB, [Eval(i, score) for i, score in enumerate(scores)])


def test_without_smoothing_and_noise_it_is_the_papers_rule() -> None:
    scores = (1, 3, 2, 2.5, 2, 1, 1, 0.5, 0.2, 4)
    plain = verdicts("smoothed-declines:k=2,ema=1,noise=0", *scores)

    assert [type(each) for each in plain] == [type(each) for each in verdicts("k-declines:k=2", *scores)]


def test_two_falls_within_the_noise_do_not_stop_a_run() -> None:
    assert not any(isinstance(v, Stop) for v in verdicts("smoothed-declines", 5, 6, 4, 6, 5, 4, 6, 5, 4, 5, 6, 5, 4))


def test_two_falls_beyond_the_noise_do() -> None:
    level = (5.0, 5.1, 4.9, 5.0, 5.1, 4.9, 5.0)
    found = verdicts("smoothed-declines", *level, 4.0, 3.0)

    assert found[-2] == Declining(1, 2)
    assert isinstance(found[-1], Stop)
    assert found[-1].count == 2


def test_a_fall_up_to_min_delta_does_not_count() -> None:
    falls = (5.0, 4.9, 4.8, 4.7, 4.6)

    assert all(isinstance(v, KeepGoing) for v in verdicts("smoothed-declines:ema=1,noise=0,min_delta=0.11", *falls))
    assert isinstance(verdicts("smoothed-declines:ema=1,noise=0,min_delta=0.09", *falls)[-1], Stop)


def test_k_declines_takes_smoothing_and_a_margin_of_noise() -> None:
    """What is not named is off: `ema` alone asks for no margin, `noise` alone for no smoothing."""
    for given, same in (
        ("k-declines:k=3,ema=0.5", "smoothed-declines:k=3,ema=0.5,noise=0"),
        ("k-declines:noise=2,min_delta=0.1", "smoothed-declines:k=2,ema=1,noise=2,min_delta=0.1"),
    ):
        assert detector(given) == detector(same)
    assert detector("k-declines:k=3").spec == "k-declines:k=3"


def test_with_a_margin_of_noise_there_is_no_verdict_before_four_evals() -> None:
    falls = (9.0, 5.0, 1.0)

    assert all(isinstance(v, KeepGoing) for v in verdicts("smoothed-declines", *falls))
    assert isinstance(verdicts("smoothed-declines:ema=1,noise=0", *falls)[-1], Stop)


def test_the_smoothed_score_by_hand() -> None:
    """Weight 1 / 4: 0, 4 (1), 0 (.75), 0 (.5625): two falls of .25 and .1875, and .4375 below the best."""
    scores = (0.0, 4.0, 0.0, 0.0)

    assert verdicts("smoothed-declines:ema=0.25,noise=0", *scores)[-2:] == (
        Declining(1, 2),
        Stop("the smoothed score fell 2 times in a row, by more than 0 times its noise", 2),
    )
    assert verdicts("smoothed-declines:ema=0.25,noise=0,min_delta=0.1875", *scores)[-1] == KeepGoing()
    assert isinstance(verdicts("smoothed-declines:ema=0.25,noise=0,min_delta=0.1874", *scores)[-1], Stop)


def test_falls_within_the_noise_are_counted_up_to_one_before_the_stop() -> None:
    """Steps 2, -1, -1, -1: bends -3, 0, 0 show nothing, so half the smallest step counts: .5. The distance is 3."""
    scores = (0.0, 2.0, 1.0, 0.0, -1.0)

    assert verdicts("smoothed-declines:ema=1,noise=6", *scores)[-1] == Declining(1, 2)
    assert verdicts("smoothed-declines:ema=1,noise=5.9", *scores)[-1] == Stop(
        "the smoothed score fell 3 times in a row, by more than 5.9 times its noise", 3
    )


def test_where_less_is_better_the_score_rose() -> None:
    points = [Eval(i, float(score)) for i, score in enumerate((1, 2, 3))]
    stop = fold(detector("smoothed-declines:ema=1,noise=0", Mode.MIN), JOB, points)[-1]

    assert getattr(stop, "reason", "").startswith("the smoothed score rose 2 times in a row")


def test_values_that_make_no_sense_are_refused_and_the_ends_taken() -> None:
    for bad in ("k=0", "ema=0", "ema=1.1"):
        with pytest.raises(ValueError, match="k of 1 or more and ema in"):
            detector(f"smoothed-declines:{bad}")
    for bad in ("noise=-1", "noise=inf", "min_delta=-1"):
        with pytest.raises(ValueError, match="noise and min_delta must be finite and not negative"):
            detector(f"smoothed-declines:{bad}")
    assert detector("smoothed-declines:k=1,ema=1,noise=0").spec == "smoothed-declines:k=1,ema=1,noise=0,min_delta=0"


def test_four_evals_are_enough_for_a_verdict() -> None:
    """Smoothed 9, 8, 6.5, 4.75: 4.25 below the best; the noise is half a step, 1."""
    assert isinstance(verdicts("smoothed-declines", 9.0, 7.0, 5.0, 3.0)[-1], Stop)
    assert not isinstance(verdicts("smoothed-declines:noise=4.3", 9.0, 7.0, 5.0, 3.0)[-1], Stop)
