"""What every rule that reads scores owes: direction, missing scores, a readable name, and no memory of its own."""

import math
from random import Random

import pytest

from evalstopd.core.detectors import DETECTORS, Declining, Stop, detector, fold
from evalstopd.core.model import Eval, JobView, Mode

JOB = JobView("1", 0.0, 1)
RULES = (
    "blocks",
    "recommended",
    "drop-test-paper",
    "drop-test-safe",
    "high-power",
    "smoothed-declines",
    "guaranteed:items=100,alpha=0.1",
)


def rise_and_fall(stream: Random, evals: int = 24, noise: float = 0.02) -> list[float]:
    shape = [0.2 + 0.6 * math.sin(math.pi * min(1.0, 1.2 * i / evals)) for i in range(evals)]
    return [min(1.0, max(0.0, score + stream.gauss(0, noise))) for score in shape]


def evals(scores: list[float]) -> list[Eval]:
    return [Eval(i, score) for i, score in enumerate(scores)]


@pytest.mark.parametrize("rule", RULES)
def test_a_clear_decline_is_stopped_and_said_in_words(rule: str) -> None:
    verdicts = fold(detector(rule), JOB, evals(rise_and_fall(Random(1))))

    assert isinstance(verdicts[-1], Stop)
    assert verdicts[-1].count >= 1
    assert len(verdicts[-1].reason) > 20


@pytest.mark.parametrize("rule", RULES)
def test_a_clear_rise_is_let_go_on(rule: str) -> None:
    scores = [0.1 + 0.8 * i / 30 for i in range(30)]

    assert not any(isinstance(each, Stop) for each in fold(detector(rule), JOB, evals(scores)))


@pytest.mark.parametrize("rule", [*RULES, "k-declines:k=2", "patience:patience=2"])
@pytest.mark.parametrize("mode", Mode)
def test_no_eval_that_is_itself_a_new_best_is_a_stop(rule: str, mode: Mode) -> None:
    """One high eval after many low ones: the means of the last evals are still low."""
    stream = Random(6)
    for length in (6, 10, 20, 30, 60, 100):
        high, low = length // 2, length - length // 2 - 1
        scores = [stream.uniform(0.6, 0.7) for _ in range(high)] + [stream.uniform(0, 0.2) for _ in range(low)]
        curve = [each if mode is Mode.MAX else 1 - each for each in (*scores, max(scores) + 0.01)]
        points = [Eval(step, score, 0.02) for step, score in enumerate(curve)]

        assert not isinstance(fold(detector(rule, mode), JOB, points)[-1], Stop)


@pytest.mark.parametrize("rule", RULES)
def test_where_less_is_better_the_mirrored_curve_gets_the_same_verdicts(rule: str) -> None:
    scores = rise_and_fall(Random(2))
    up = fold(detector(rule, Mode.MAX), JOB, evals(scores))
    down = fold(detector(rule, Mode.MIN), JOB, evals([1 - score for score in scores]))

    assert [(type(each), getattr(each, "count", 0)) for each in up] == [
        (type(each), getattr(each, "count", 0)) for each in down
    ]


@pytest.mark.parametrize("rule", RULES)
def test_scores_that_are_not_finite_neither_count_nor_reset(rule: str) -> None:
    """Stepped directly, past the fold's own filter: the state stays, the verdict is that of the state."""
    each = detector(rule)
    state = each.start(JOB)
    for point in evals(rise_and_fall(Random(3))):
        state, before = each.step(state, point)
        for missing in (math.nan, math.inf, -math.inf):
            unmoved, verdict = each.step(state, Eval(99, missing))
            assert (unmoved, verdict) == (state, before)
            assert each.take(state, Eval(99, missing)) == state


@pytest.mark.parametrize("rule", RULES)
def test_a_declining_verdict_counts_up_to_less_than_its_stop(rule: str) -> None:
    stream = Random(4)
    for _ in range(50):
        for verdict in fold(detector(rule), JOB, evals(rise_and_fall(stream, noise=0.1))):
            if isinstance(verdict, Declining):
                assert 1 <= verdict.count < verdict.of


@pytest.mark.parametrize("rule", RULES)
def test_the_name_reads_back_as_the_same_rule(rule: str) -> None:
    assert detector(detector(rule).spec) == detector(rule)


@pytest.mark.parametrize("rule", [*RULES, "never", "k-declines"])
def test_a_state_is_a_value_and_folding_on_from_it_gives_the_same(rule: str) -> None:
    """A crash between two evals changes nothing: the state is as good as the history."""
    points, each = evals(rise_and_fall(Random(5))), detector(rule)
    state = each.start(JOB)
    verdicts = []
    for point in points:
        state, verdict = detector(rule).step(state, point)
        verdicts.append(verdict)

    assert tuple(verdicts) == fold(each, JOB, points)


@pytest.mark.parametrize(
    "spec",
    ["blocks:c=0", "recommended:growth=-1", "blocks:c=nan", "drop-test-safe:sigma=-1", "guaranteed:alpha=1",
     "guaranteed:items=0", "blocks:slow=2", "blocks:plain=2", "blocks:caution=-1",
     "guaranteed:low=1,high=1", "blocks:k=2", "smoothed-declines:ema=0"],
)  # fmt: skip
def test_a_value_that_makes_no_sense_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=spec.partition(":")[0]):
        detector(spec)


def test_every_rule_says_in_its_first_sentence_when_it_stops() -> None:
    """An admin reads that line in the documentation and in `--help`."""
    for name, rule in DETECTORS.items():
        first = (rule.__doc__ or "").split("\n")[0]
        assert first.endswith("."), name
        assert "top" in first or name == "never", name


@pytest.mark.parametrize("rule", [*RULES, "k-declines:k=2", "patience:patience=2", "never"])
def test_verdicts_that_are_not_asked_for_change_none_of_those_that_are(rule: str) -> None:
    points = evals([*rise_and_fall(Random(2), evals=40, noise=0.1), math.nan, 0.4])
    whole = fold(detector(rule), JOB, points)

    assert [fold(detector(rule), JOB, points, since) for since in range(len(whole) + 1)] == [
        whole[since:] for since in range(len(whole) + 1)
    ]
