"""Metrics known to mislead are refused or warned of; alarms that stop nothing."""

from random import Random
from statistics import fmean

import pytest

from evalstopd.core.guards import cautions, metric_cautions, proxy_alarm, set_size_caution
from evalstopd.core.model import Eval, Mode
from evalstopd.core.noise import from_curve, from_items

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
        ("Eval/Loss", DPO, ["preference-loss"], True),
        ("eval/loss/total", (), ["eval-loss"], False),
        ("rewards/accuracies", (), ["training-metric"], True),
    ],
)
def test_what_is_known_against_a_metric(metric: str, others: tuple[str, ...], codes: list[str], refused: bool) -> None:
    found = metric_cautions(metric, others)

    assert [each.code for each in found] == codes
    assert any(each.refuse for each in found) == refused


OF_TRAINING = (
    "Loss/train", "Train/Loss", "TrainLoss", "trainLoss", "loss_train", "loss/train", "loss/total", "loss/policy",
    "ppo/loss/policy", "loss_epoch", "loss_step", "loss_train_epoch", "Loss", "LOSS", "Reward", "Reward/mean",
    "Train/Reward", "rollout/ep_rew_mean", "critic/score/mean", "objective/scores", "ppo/mean_scores", "acc/train",
    "accuracy_train", "MSELoss", "train.acc", "train:mean_reward", "training-accuracy", "TRAIN_ACC", "train/val_loss",
    # As trainers log them.
    "loss", "train_loss", "train_runtime", "train_loss_step", "train_loss_epoch", "train/acc", "train_acc", "reward",
    "rewards/margins", "rewards/accuracies", "rewards/chosen", "rewards/true_reward/mean", "critic/rewards/mean",
    "actor/pg_loss", "actor/kl_loss", "objective/rlhf_reward", "loss/value_avg",
)  # fmt: skip
HELD_OUT = (
    "eval_loss", "val_loss", "validation/loss", "test/loss", "Loss/test", "Loss/val", "ValLoss", "evalLoss",
    "EvalReward",
    "eval_rewards/accuracies", "eval/reward", "val-core/math/acc/mean_at_4", "eval/score", "val/acc", "heldout/reward",
    "held_out/loss",
    "held-out/reward", "HeldOutLoss", "gold/reward", "eval/gold_reward", "benchmark/reward", "dev.loss",
    "rollout/eval/score", "valid_loss", "test_reward/mean", "eval/train_split_accuracy", "holdout_loss",
    # As trainers log them.
    "eval_accuracy", "eval_f1", "eval_imdb_accuracy", "eval_rewards/true_reward/mean", "eval_rewards/margins",
    "eval_entropy", "val_acc", "val_loss_epoch", "val/loss", "val-aux/gsm8k/reward/mean_at_8",
    "val-core/gsm8k/reward/mean_at_8",
)  # fmt: skip
OF_NEITHER = (
    "score",
    "accuracy",
    "f1",
    "glossary",
    "lossless_rate",
    "constraint",
    "rewarding",
    "perplexity",
    "mmlu/acc",
)


@pytest.mark.parametrize("metric", OF_TRAINING)
def test_what_is_measured_in_training_is_refused_however_it_is_spelled(metric: str) -> None:
    assert [each.code for each in metric_cautions(metric)] == ["training-metric"]


@pytest.mark.parametrize("metric", [*HELD_OUT, *OF_NEITHER])
def test_what_is_measured_held_out_or_says_nothing_of_training_is_not_refused(metric: str) -> None:
    assert not any(each.refuse for each in metric_cautions(metric))


@pytest.mark.parametrize("metric", ["", "%", "-/_", "\u0442\u043e\u0447\u043d\u043e\u0441\u0442\u044c"])
def test_of_a_name_without_words_nothing_is_known(metric: str) -> None:
    assert metric_cautions(metric) == ()


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


def test_what_is_known_against_a_metric_goes_before_what_its_evals_show() -> None:
    changed = [accuracy(i, 0.5, 500) for i in range(3)] + [accuracy(i, 0.5, 100) for i in range(3, 6)]

    assert [each.code for each in cautions("train/accuracy", (), changed)] == ["training-metric", "eval-set-size"]
    assert [each.code for each in cautions("eval_loss", (), changed)] == ["eval-loss"], "only a share has items"
    assert cautions("eval_accuracy", (), changed[:3]) == ()
    assert [each.code for each in cautions("eval_loss", ("eval_rewards/margins",), ())] == ["preference-loss"]


def test_a_change_by_exactly_half_again_is_none() -> None:
    """An error of an eighth at a half stands for 16 items, of a sixteenth for 64."""
    four_times = [Eval(i, 0.5, 0.125 if i < 3 else 0.0625) for i in range(6)]
    same = [Eval(i, 0.5, 0.125) for i in range(6)]

    assert set_size_caution(four_times) is not None
    assert set_size_caution(same) is None


@pytest.mark.parametrize(
    "odd",
    [
        Eval(9, 0.5),
        Eval(9, 0.5, 0.0),
        Eval(9, 0.5, -0.01),
        Eval(9, 0.5, 1e-200),
        Eval(9, 0.0, 0.01),
        Eval(9, 1.0, 0.01),
    ],
)
def test_evals_without_a_usable_error_say_nothing_of_the_size(odd: Eval) -> None:
    same = [accuracy(i, 0.5, 500) for i in range(4)]

    assert set_size_caution([*same, odd, odd, odd]) is None


def test_sets_of_fewer_than_ten_items_are_not_compared() -> None:
    assert set_size_caution([accuracy(i, 0.5, 4 if i < 4 else 9) for i in range(8)]) is None
    assert set_size_caution([accuracy(i, 0.5, 4 if i < 4 else 900) for i in range(8)]) is None
    assert set_size_caution([accuracy(i, 0.5, 11 if i < 4 else 900) for i in range(8)]) is not None


STEADY = [Eval(i, 0.5) for i in range(9)]


def line(*scores: float) -> list[Eval]:
    return [Eval(i, score) for i, score in enumerate(scores)]


def test_the_thirds_of_nine_evals_are_compared() -> None:
    """The last three against the three before; what came first does not count."""
    rises = line(5, 4, 3, 2, 2.5, 3, 3.5, 4, 4.5)

    assert proxy_alarm(line(*range(9)), STEADY) is not None
    assert proxy_alarm(line(*range(8)), STEADY) is None
    assert proxy_alarm(rises, STEADY) is not None
    assert proxy_alarm(STEADY, STEADY) is None
    assert proxy_alarm(rises, line(*range(9))) is None
    assert proxy_alarm(rises, line(*range(9, 0, -1))) is not None
    assert proxy_alarm(rises, line(*range(9, 0, -1)), Mode.MIN) is None


OURS = [Eval(i, score, from_items(score, 100)) for i, score in enumerate([0.5] * 4 + [0.99] * 4)]
THEIRS = [accuracy(i, score, 100) for i, score in enumerate([0.5] * 4 + [0.99] * 4)]


def test_near_one_the_two_ways_of_making_errors_disagree_and_both_must_show_the_change() -> None:
    """Each read in the other's way, a hundred items near 1 look like half or twice as many."""
    assert set_size_caution(OURS) is None
    assert set_size_caution(THEIRS) is None


@pytest.mark.parametrize(
    "odd",
    [
        Eval(9, 0.5),
        Eval(9, 0.5, 0.0),
        Eval(9, 0.5, -0.01),
        Eval(9, 0.0, 1e-4),
        Eval(9, 1.0, 1e-4),
        Eval(9, 1.5, 0.01),
        Eval(9, 0.5, 0.25),
    ],
)
def test_what_tells_no_size_does_not_settle_a_disagreement(odd: Eval) -> None:
    """No error, none that is one, no share, or four items."""
    for curve in (OURS, THEIRS):
        assert set_size_caution([*curve, odd, odd, odd]) is None


def raised(by: float, evals: int) -> list[float]:
    """Return noisy scores of which the last third is raised."""
    stream = Random(evals)
    return [stream.gauss(0, 0.1) + (by if at >= evals - evals // 3 else 0) for at in range(evals)]


def rise(scores: list[float]) -> float:
    """Return the rise from the middle third to the last, in standard errors of the difference of two means."""
    third = len(scores) // 3
    return (fmean(scores[-third:]) - fmean(scores[-2 * third : -third])) / (from_curve(scores) * (2 / third) ** 0.5)


@pytest.mark.parametrize("evals", [12, 14, 30])
def test_the_alarm_asks_for_a_clear_rise_of_the_one_and_none_of_the_other(evals: int) -> None:
    runs = [raised(step / 100, evals) for step in range(60)]
    clear = next(scores for scores in runs if rise(scores) > 4)

    for scores in runs:
        assert (proxy_alarm(line(*scores), STEADY) is not None) == (rise(scores) >= 3)
        assert (proxy_alarm(line(*clear), line(*scores)) is not None) == (rise(scores) < 1)
    found = proxy_alarm(line(*clear), STEADY)
    assert found is not None
    assert found.startswith("the training reward still rises")


@pytest.mark.parametrize("error", [5e-324, 1e-200, 1e-150, 1e-20, 1e-9])
def test_an_error_next_to_nothing_names_no_absurd_number_of_items(error: float) -> None:
    """It would be one of a set of up to 1e300 items, a number of 300 digits in the line."""
    assert set_size_caution([Eval(step, 0.5, 0.05 if step < 5 else error) for step in range(10)]) is None
