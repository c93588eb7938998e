"""Which metric judges a job, and which way is better: chosen by the site's order, never by luck."""

import pytest

from evalstopd.core.metric_choice import Unclear, choose, direction_caution, is_sweeping, told_mode
from evalstopd.core.mixed import mixed_caution
from evalstopd.core.model import Mode, Point
from evalstopd.core.naming import guessed_mode

SITE = ("eval_accuracy", "eval_rewards/*", "val-core/*/mean_at_*", "val_*", "eval_*")
TRAINER = {"loss", "grad_norm", "learning_rate", "train_loss", "train_runtime", "epoch"}
SPEEDS = {"eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "eval_samples"}


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (TRAINER | SPEEDS | {"eval_loss", "eval_accuracy"}, "eval_accuracy"),
        (TRAINER | SPEEDS | {"eval_loss"}, "eval_loss"),
        (TRAINER | {"val_loss"}, "val_loss"),
        ({"val-core/math/acc/mean_at_4", "val-aux/math/x", "critic/rewards/mean"}, "val-core/math/acc/mean_at_4"),
        (TRAINER | SPEEDS | {"eval_f1", "eval_f1_stderr"}, "eval_f1"),
        (SPEEDS | {"rewards/margins", "eval_rewards/accuracies", "eval_loss"}, "eval_rewards/accuracies"),
    ],
)  # fmt: skip
def test_the_first_pattern_that_fits_chooses(names: set[str], chosen: str):
    assert choose(names, SITE) == chosen


@pytest.mark.parametrize(
    "names",
    [
        set(),
        TRAINER,
        TRAINER | SPEEDS,
        {"eval_reward"},
        {"rewards/margins", "eval_loss"},
        {"system/cpu_utilization_percentage", "system/gpu_0_utilization_percentage"},
    ],
)
def test_a_training_loss_or_reward_and_a_speed_are_never_chosen(names: set[str]):
    """The loss of a preference training rises in healthy runs; eval_reward of GRPO is the reward that gets gamed."""
    assert choose(names, (*SITE, "*")) is None or choose(names, SITE) is None


@pytest.mark.parametrize("name", ["train/reward", "loss", "reward", "train_loss", "rewards", "eval_reward"])
def test_not_even_a_pattern_that_names_it_chooses_what_is_measured_in_training(name: str):
    assert choose({name}, (name, "*")) is None


def test_where_a_pattern_fits_several_the_owner_has_to_decide():
    found = choose({"eval_rewards/accuracies", "eval_rewards/margins", "eval_f1"}, SITE)
    assert isinstance(found, Unclear)
    assert (
        found.text == "eval_rewards/* fits eval_rewards/accuracies, eval_rewards/margins: name one by evalstop_metric="
    )


def test_a_flood_of_hostile_names_is_one_short_printable_line():
    found = choose({f"val_\n\x1b[31m{number}{'x' * 200}" for number in range(500)}, SITE)
    assert isinstance(found, Unclear)
    assert found.text.isascii()
    assert found.text.isprintable()
    assert len(found.text) < 1_000


@pytest.mark.parametrize(
    ("metric", "params", "told"),
    [
        ("eval_loss", {}, Mode.MIN),
        ("eval_f1", {"metric_for_best_model": "f1", "greater_is_better": "True"}, Mode.MAX),
        ("eval_wer", {"metric_for_best_model": "eval_wer", "greater_is_better": "False"}, Mode.MIN),
        ("eval_f1", {"metric_for_best_model": "loss", "greater_is_better": "False"}, None),
        ("eval_f1", {"metric_for_best_model": "f1", "greater_is_better": "None"}, None),
        ("eval_loss", {"metric_for_best_model": "loss", "greater_is_better": "True"}, Mode.MIN),
        ("f1", {}, None),
    ],
)
def test_the_site_says_which_way_is_better_then_the_trainer(metric: str, params: dict[str, str], told: Mode | None):
    assert told_mode(metric, [("*loss", Mode.MIN), ("*_loss", Mode.MAX)], params) == told


@pytest.mark.parametrize(
    ("metric", "guess"),
    [
        ("eval_loss", Mode.MIN),
        ("val/perplexity", Mode.MIN),
        ("eval/accuracy", Mode.MAX),
        ("eval/gold_reward", Mode.MAX),
        ("eval/fid", Mode.MIN),
        ("eval/FID", Mode.MIN),
        ("val/WER", Mode.MIN),
        ("eval/bpc", Mode.MIN),
        ("eval/AUC", Mode.MAX),
        ("eval/fidelity", None),
        ("eval_error_accuracy", None),
        ("score", None),
        ("glossary", None),
    ],
)
def test_a_name_speaks_for_a_direction_or_for_none(metric: str, guess: Mode | None):
    assert guessed_mode(metric) == guess


@pytest.mark.parametrize(
    ("metric", "mode", "told", "stated", "held"),
    [
        ("score", Mode.MAX, Mode.MAX, False, False),
        ("score", Mode.MAX, None, False, True),
        ("eval/accuracy", Mode.MAX, None, False, True),
        ("score", Mode.MAX, None, True, False),
        ("eval_loss", Mode.MAX, None, True, True),
        ("eval_loss", Mode.MAX, Mode.MAX, True, False),
        ("eval_loss", Mode.MIN, None, True, False),
        ("score", Mode.MAX, Mode.MIN, True, True),
    ],
)
def test_a_guess_or_a_contradiction_holds_a_job_on_observe(
    metric: str, mode: Mode, told: Mode | None, stated: bool, held: bool
):
    found = direction_caution(metric, mode, told, stated=stated)
    assert (found is not None and found.refuse) == held


@pytest.mark.parametrize(
    ("metric", "pattern", "mode", "held"),
    [
        ("val/loss", "val/*", Mode.MAX, True),
        ("val/nll", "val/*", Mode.MAX, True),
        ("val/perplexity", "val/*", Mode.MAX, True),
        ("val/error_rate", "val/*", Mode.MAX, True),
        ("val_acc_loss", "val_acc*", Mode.MAX, True),
        ("val_acc_loss", "*loss", Mode.MIN, False),
        ("valLoss", "val*", Mode.MAX, True),
        ("val_err", "val*", Mode.MAX, True),
        ("val_logloss", "val*", Mode.MAX, True),
        ("validation_0-logloss", "val*", Mode.MAX, True),
        ("val_map_error", "val*", Mode.MAX, True),
        ("valAccuracy", "val*", Mode.MAX, False),
        ("validation_0-auc", "validation_*", Mode.MIN, True),
        ("eval/accuracy", "eval/*", Mode.MIN, True),
        ("val/loss", "val/loss", Mode.MAX, False),
        ("val/loss", "*loss", Mode.MIN, False),
        ("val/score", "val/*", Mode.MAX, False),
        ("val/accuracy", "val/*", Mode.MAX, False),
    ],
)
def test_a_pattern_that_sweeps_up_a_metric_whose_name_says_otherwise_costs_nobody_a_job(
    metric: str, pattern: str, mode: Mode, held: bool
):
    """A falling loss, best at its end, was taken for a falling score. A metric's whole name is meant as it stands."""
    modes = [(pattern, mode)]
    told = told_mode(metric, modes, {})
    for stated in (True, False):
        found = direction_caution(metric, mode, told, stated=stated, sweeping=is_sweeping(metric, modes))
        assert (found is not None and found.refuse) == held


def test_a_name_that_also_speaks_for_the_sites_mode_speaks_against_it_all_the_same():
    assert direction_caution("val_map_error", Mode.MAX, None, stated=True) is not None
    assert direction_caution("val_map_error", Mode.MIN, None, stated=True) is not None
    assert direction_caution("val_map_score", Mode.MAX, None, stated=True) is None


def points(*logged: tuple[int, float, int]) -> list[Point]:
    return [Point("r", step, value, stamp) for step, value, stamp in logged]


def test_the_values_of_several_datasets_under_one_name_are_seen():
    """What `mlflow.log_metric(..., dataset=...)` leaves behind: 0.6, 0.3, 0.9, 0.6 looks like declines."""
    found = mixed_caution(points(*((s, v, 100 * s + n) for s in range(4) for n, v in enumerate((0.6 + s, 0.3 + s)))))
    assert found is not None
    assert found.refuse


def test_a_requeue_that_repeats_its_steps_is_not_taken_for_several_datasets():
    first = [(step, 0.1 * step, step) for step in range(10)]
    again = [(step, 0.1 * step + 0.01, 100 + step) for step in range(3, 12)]
    assert mixed_caution(points(*first, *again)) is None


def test_a_value_corrected_once_or_logged_twice_is_not_taken_for_several_datasets():
    logged = [(step, 0.1 * step, step) for step in range(10)]
    assert mixed_caution(points(*logged, *logged, (9, 0.95, 10), (4, 0.2, 4))) is None


def test_a_nan_beside_each_value_is_not_taken_for_several_datasets():
    assert mixed_caution(points(*((s, v, s) for s in range(5) for v in (0.5, float("nan"))))) is None
