"""Which checkpoint is kept, and how much of the true score the choice costs."""

from random import Random

import pytest

from evalstopd.core.checkpoint_choice import best_smoothed, k_before, smoothed
from evalstopd.core.detectors import Stop, detector, fold
from evalstopd.core.model import Eval, JobView, Mode
from tests.core.paper_curves import hacking

JOB = JobView("1", 0.0, 1)


def evals(*scores: float) -> list[Eval]:
    return [Eval(10 * i, score) for i, score in enumerate(scores)]


def test_a_good_stretch_beats_a_lucky_eval() -> None:
    assert best_smoothed(evals(0.1, 0.9, 0.2, 0.6, 0.7, 0.6, 0.1), Mode.MAX).step == 40
    assert best_smoothed(evals(0.9, 0.1, 0.8, 0.4, 0.3, 0.4, 0.9), Mode.MIN).step == 40


def test_a_lucky_last_eval_is_not_preferred_to_a_good_stretch() -> None:
    assert best_smoothed(evals(0.5, 0.8, 0.8, 0.8, 0.5, 0.95), Mode.MAX).step == 20


def test_only_pinned_checkpoints_can_be_chosen() -> None:
    curve = evals(0.1, 0.5, 0.9, 0.9, 0.9, 0.4)

    assert best_smoothed(curve, Mode.MAX, {10, 40, 50}).step == 40
    assert best_smoothed(curve, Mode.MAX, {7}) is None
    assert best_smoothed([], Mode.MAX) is None


def test_the_papers_choice_counts_back_from_the_trigger() -> None:
    assert k_before(evals(1, 2, 3, 2, 1), 2).step == 20
    assert k_before(evals(1, 2), 2) is None


@pytest.mark.rates
def test_what_the_choice_costs_in_true_score() -> None:
    """Paper's curves, noise .05, k = 2: the best stretch loses .010 of true score, two evals before the stop .014."""
    stream, made = Random(1), detector("k-declines:k=2")
    smooth, counted = [], []
    for _ in range(2000):
        run = hacking(stream, 0.05)
        stop = next((i for i, v in enumerate(fold(made, JOB, run.evals)) if isinstance(v, Stop)), None)
        if stop is not None:
            seen = run.evals[: stop + 1]
            smooth.append(max(run.true) - run.true[best_smoothed(seen, Mode.MAX).step])
            counted.append(max(run.true) - run.true[k_before(seen, 2).step])

    assert sum(smooth) / len(smooth) == pytest.approx(0.010, abs=0.0015)
    assert sum(counted) / len(counted) == pytest.approx(0.014, abs=0.0015)


def test_what_an_end_lacks_counts_as_the_next_worse_score() -> None:
    curve = evals(0.4, 0.7, 0.1, 0.4)

    assert [round(smoothed(curve, at, Mode.MAX), 6) for at in range(4)] == [0.5, 0.4, 0.4, 0.2]
    assert [round(smoothed(curve, at, Mode.MIN), 6) for at in range(4)] == [0.6, 0.4, 0.4, 0.3]
    assert smoothed(evals(0.5), 0, Mode.MAX) == 0.5


def test_of_equal_stretches_the_earliest_is_chosen() -> None:
    assert best_smoothed(evals(0.5, 0.5, 0.5, 0.5), Mode.MAX).step == 0


def test_the_papers_choice_may_be_the_first_eval() -> None:
    assert k_before(evals(3, 2, 1), 2).step == 0
