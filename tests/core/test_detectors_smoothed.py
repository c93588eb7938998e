"""Declines of the smoothed score: how often in a row, how far below the best."""

from evalstopd.core.detectors import Declining, KeepGoing, Stop, Verdict, detector, fold
from evalstopd.core.model import Eval, JobView

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
