"""What is logged beside a metric: whose error it is, how items are counted, and what is left alone."""

import math
from collections.abc import Mapping, Sequence

import pytest

from evalstopd.core.logged import completed, is_beside, is_share
from evalstopd.core.model import Point
from evalstopd.core.noise import from_items, items_behind

Series = Mapping[str, Sequence[tuple[int, float]]]


def errors(metric: str, series: Series, items: int = 0) -> list[float | None]:
    made = {name: [Point("r", step, value, step) for step, value in each] for name, each in series.items()}
    found = completed(metric, made[metric], made, lambda name: made[name], items)
    return [point.stderr for point in found]


def test_an_error_of_its_own_comes_before_the_items() -> None:
    """As lm-evaluation-harness logs it beside the score."""
    series = {"gsm8k/acc": [(1, 0.5)], "gsm8k/acc_stderr": [(1, 0.02)], "gsm8k/acc_n": [(1, 100)]}

    assert errors("gsm8k/acc", series) == [0.02]


def test_inspects_error_stands_beside_its_scorers_accuracy() -> None:
    series = {"match/accuracy": [(1, 0.5)], "match/stderr": [(1, 0.02)]}

    assert errors("match/accuracy", series) == [0.02]
    assert is_beside("match/stderr", series)
    assert not is_beside("eval/stderr", series)


@pytest.mark.parametrize(
    ("metric", "count"),
    [
        ("eval/accuracy", "eval/accuracy_n"),
        ("eval/accuracy", "eval/accuracy_samples"),
        ("eval_accuracy", "eval_samples"),
        ("eval_hard_accuracy", "eval_samples"),
        ("eval/accuracy", "eval/samples"),
        ("accuracy_score", "example_count"),
        ("val_accuracy", "val_example_count"),
    ],
)
def test_items_are_found_under_the_names_that_trainers_use(metric: str, count: str) -> None:
    assert errors(metric, {metric: [(1, 0.5)], count: [(1, 400)]}) == [from_items(0.5, 400)]


@pytest.mark.parametrize(("metric", "prefix"), [("eval_accuracy", "eval_"), ("eval/accuracy", "eval/")])
def test_the_trainers_speed_tells_its_items(metric: str, prefix: str) -> None:
    """Hugging Face logs no count, but seconds (4 digits) and items per second (3 digits) at each eval."""
    series = {
        metric: [(1, 0.5), (2, 0.6)],
        f"{prefix}runtime": [(1, 3.1416), (2, 2.7183)],
        f"{prefix}samples_per_second": [(1, round(872 / 3.1416, 3)), (2, round(872 / 2.7183, 3))],
    }

    assert errors(metric, series) == [from_items(0.5, 872), from_items(0.6, 872)]


def test_each_eval_set_of_several_has_its_own_speed() -> None:
    speed = {"eval_a_runtime": [(1, 2.0)], "eval_a_samples_per_second": [(1, 50.0)]}
    series = {"eval_a_accuracy": [(1, 0.5)], "eval_runtime": [(1, 1.0)], "eval_samples_per_second": [(1, 9.0)], **speed}

    assert errors("eval_a_accuracy", series) == [from_items(0.5, 100)]


def test_a_count_that_is_logged_once_counts_for_all_and_a_later_one_from_then_on() -> None:
    scores = [(step, 0.5) for step in (1, 2, 3, 4)]

    assert errors("acc", {"acc": scores, "acc_n": [(2, 100), (4, 400)]}) == [
        from_items(0.5, n) for n in (100, 100, 100, 400)
    ]


def test_only_shares_of_right_answers_have_an_error_by_their_items() -> None:
    """A mean reward may lie in [0, 1] and its items far outside."""
    beside = {"eval_samples": [(1, 100)]}

    assert errors("eval_reward", {"eval_reward": [(1, 0.5)], **beside}) == [None]
    assert errors("eval_loss", {"eval_loss": [(1, 0.5)], **beside}) == [None]
    assert is_share("eval_accuracy")


@pytest.mark.parametrize("count", [0.0, -5.0, math.nan, math.inf, 1e300])
def test_what_is_no_count_gives_no_error(count: float) -> None:
    assert errors("acc", {"acc": [(1, 0.5)], "acc_n": [(1, count)]}) == [None]


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan])
def test_what_is_no_share_gets_no_error_from_items(score: float) -> None:
    assert errors("acc", {"acc": [(1, score)], "acc_n": [(1, 100)]}) == [None]


def test_what_the_site_says_counts_only_where_the_run_says_nothing() -> None:
    assert errors("score", {"score": [(1, 0.5)]}, items=100) == [from_items(0.5, 100)]
    assert errors("acc", {"acc": [(1, 0.5)], "acc_n": [(1, 400)]}, items=100) == [from_items(0.5, 400)]


def test_nothing_is_read_for_a_metric_without_points() -> None:
    def read(name: str) -> Sequence[Point]:
        raise AssertionError(name)

    assert completed("acc", (), ("acc_stderr", "acc_n"), read) == ()


@pytest.mark.parametrize("score", [0.0, 0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("items", [5, 100, 20_000])
def test_the_items_behind_an_error_are_found_again(score: float, items: int) -> None:
    assert items_behind(score, from_items(score, items)) == pytest.approx(items, rel=1e-6)
