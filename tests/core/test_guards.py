"""Metrics known to mislead are refused or warned of; alarms that stop nothing."""

from random import Random

import pytest

from evalstopd.core.guards import metric_cautions, proxy_alarm, set_size_caution
from evalstopd.core.model import Eval, Mode

DPO = ("eval_rewards/margins", "eval_rewards/accuracies", "loss")


@pytest.mark.parametrize(
    ("metric", "others", "codes", "refused"),
    [
        ("eval_loss", DPO, ["preference-loss"], True),
        ("eval_loss", ("eval_log_odds_ratio",), ["preference-loss"], True),
        ("eval_loss", ("eval_accuracy",), ["eval-loss"], False),
        ("val_loss", (), ["eval-loss"], False),
        ("eval_rewards/accuracies", DPO, [], False),
        ("eval_accuracy", (), [], False),
        ("val/acc", (), [], False),
        ("eval_rewards/true_reward/mean", (), [], False),
        ("eval_reward", (), ["proxy"], True),
        ("reward", (), ["training-metric"], True),
        ("train/reward", (), ["training-metric"], True),
        ("train_accuracy", (), ["training-metric"], True),
        ("loss", (), ["training-metric"], True),
        ("rewards/accuracies", (), ["training-metric"], True),
    ],
)
def test_what_is_known_against_a_metric(metric: str, others: tuple[str, ...], codes: list[str], refused: bool) -> None:
    found = metric_cautions(metric, others)

    assert [each.code for each in found] == codes
    assert any(each.refuse for each in found) == refused


def accuracy(step: int, score: float, items: int) -> Eval:
    return Eval(step, score, (score * (1 - score) / items) ** 0.5)


def test_an_eval_set_that_changes_size_is_seen_in_its_errors() -> None:
    same = [accuracy(i, 0.3 + i / 20, 500) for i in range(10)]

    assert set_size_caution(same) is None
    assert set_size_caution([Eval(i, 0.5) for i in range(10)]) is None
    assert set_size_caution([*same, accuracy(10, 0.8, 100)]) is None, "one odd error is no change"
    changed = set_size_caution([*same, accuracy(10, 0.8, 100), accuracy(11, 0.8, 100)])
    assert changed is not None
    assert changed.refuse
    assert "100" in changed.text
    assert "500" in changed.text


def noisy(trend: float, evals: int, seed: int) -> list[Eval]:
    stream = Random(seed)
    return [Eval(i, trend * i + stream.gauss(0, 0.02)) for i in range(evals)]


def test_a_proxy_that_rises_alone_raises_the_alarm() -> None:
    assert proxy_alarm(noisy(0.02, 30, 1), noisy(-0.005, 30, 2)) is not None
    assert proxy_alarm(noisy(0.02, 30, 1), noisy(0.005, 30, 2), Mode.MIN) is not None


def test_no_alarm_where_both_rise_or_neither_does_or_too_little_is_known() -> None:
    assert proxy_alarm(noisy(0.02, 30, 1), noisy(0.01, 30, 2)) is None
    assert proxy_alarm(noisy(0.0, 30, 1), noisy(0.0, 30, 2)) is None
    assert proxy_alarm(noisy(0.02, 8, 1), noisy(-0.02, 8, 2)) is None


def test_the_alarm_is_rare_where_nothing_moves() -> None:
    alarms = sum(proxy_alarm(noisy(0, 30, 2 * i), noisy(0, 30, 2 * i + 1)) is not None for i in range(400))

    assert alarms <= 0.05 * 400
