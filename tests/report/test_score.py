"""What is counted over many runs, and with what certainty."""

import pytest

from evalstopd.core.model import Mode
from evalstopd.report.replay.history import History, evals_of
from evalstopd.report.replay.intervals import Estimate, mean, precision, rate
from evalstopd.report.replay.judge import Outcome
from evalstopd.report.replay.labels import by_noise, by_range
from evalstopd.report.replay.score import by_evals, score


def outcome(label: str, stopped: int | None, lost: float = 0.0, saved: float = 0.0, evals: int = 10) -> Outcome:
    history = History("a", "s", "f", "m", Mode.MAX, evals_of(range(evals), [1.0] * evals), {"label": label})
    return Outcome(history, evals, stopped, saved, 1.0, lost)


def test_a_row_counts_each_run_where_it_belongs() -> None:
    found = [
        outcome("declining", 3, saved=0.6),
        outcome("declining-from-start", None),
        outcome("healthy", 4, lost=0.07, saved=0.4),
        outcome("healthy", None),
        outcome("healthy", 5, lost=0.2, saved=0.2),
        outcome("ambiguous", 2, lost=0.3, saved=0.8),
    ]
    row = score("r", "label", found, 0.5)

    assert (row.runs, row.positives, row.negatives) == (6, 2, 3)
    assert (row.recall.value, row.fpr.value) == (0.5, pytest.approx(2 / 3))
    assert (row.saved.value, row.saved_declining.value) == (pytest.approx(2 / 6), 0.3)
    assert (row.lost_over_5pct.value, row.lost_over_10pct.value) == (3 / 6, 2 / 6)


def test_without_runs_to_judge_by_a_rate_is_unknown_not_zero() -> None:
    row = score("r", "label", [outcome("healthy", None)], 0.5)

    assert row.recall == Estimate(None)
    assert row.precision.value is None


def test_wilsons_interval_has_its_textbook_values() -> None:
    """10 of 100, and none of 20, where a normal interval would claim certainty."""
    assert (rate(10, 100).low, rate(10, 100).high) == (pytest.approx(0.0552, abs=1e-4), pytest.approx(0.1744, abs=1e-4))
    assert (rate(0, 20).low, rate(0, 20).high) == (0.0, pytest.approx(0.1611, abs=1e-4))


def test_the_mean_has_the_normal_interval() -> None:
    found = mean([1.0, 2.0, 3.0, 4.0])

    assert found.value == 2.5
    assert found.high - found.value == pytest.approx(1.96 * (5 / 3 / 4) ** 0.5, abs=1e-4)


def test_precision_is_for_the_base_rate_that_was_asked_for() -> None:
    found = precision(Estimate(0.9, 0.8, 1.0), Estimate(0.1, 0.05, 0.2), 0.5)

    assert (found.value, found.low, found.high) == (0.9, 0.8, pytest.approx(1 / 1.05))
    assert precision(Estimate(0.9, 0.8, 1.0), Estimate(0.1, 0.05, 0.2), 0.1).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("evals", "group"), [(10, "<= 10"), (11, "11-20"), (50, "21-50"), (51, "51-100"), (101, "> 100")]
)
def test_groups_by_number_of_evals(evals: int, group: str) -> None:
    assert by_evals(outcome("healthy", None, evals=evals)).startswith(group)


def test_the_label_by_range_asks_for_a_fifth_of_it() -> None:
    rise = [i / 10 for i in range(11)]

    assert by_range([*rise, 0.9, 0.6, 0.6, 0.6, 0.6]) == "declining"
    assert by_range([*rise, 0.9, 0.8, 0.8, 0.8, 0.8]) == "healthy"


def test_the_label_by_noise_tells_declines_from_the_start_and_doubt() -> None:
    level = [0.50, 0.51, 0.49, 0.50, 0.51, 0.49]
    high = [0.80, 0.81, 0.79, 0.80, 0.81, 0.79]

    assert by_noise([*level, *high, *level]) == "declining"
    assert by_noise([*high, *level, *level]) == "declining-from-start"
    assert by_noise([*level, *high, *high]) == "healthy"
    assert by_noise([*level, *high, *level, *high]) == "healthy"
    assert by_noise([*high, 0.765, 0.775, 0.755, 0.765]) == "ambiguous"
