"""Jobs whose owners named no metric: chosen from what their runs have, kept, and never acted on by a guess."""

from dataclasses import replace

import pytest

from evalstopd.core.model import Mode
from evalstopd.core.rules import Rules
from evalstopd.core.watch import Watch
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import remarks, said

PICKING = replace(
    RULES,
    metric="",
    metrics=("eval_accuracy", "eval_rewards/*", "val_*"),
    modes=(("*accurac*", Mode.MAX), ("*loss", Mode.MIN)),
)


def watch_of(world: World) -> Watch:
    assert isinstance(world.store, MemoryStore)
    return world.store.recent(1)[0]


def play(world: World, *metrics: str, scores: tuple[float, ...] = RISE_AND_FALL) -> None:
    """Let the run log every metric alike and save a checkpoint, with a tick after each step."""
    (job,) = world.cluster.jobs.values()
    for number, score in enumerate(scores, 1):
        for metric in metrics:
            world.tracker.log("r1", number * 10, score, metric, int(world.clock.time_s * 1000))
        world.keeper.save(f"{job.work_dir}/out-r1", number * 10, at_s=world.clock.time_s)
        world.tick()


def test_the_metric_is_chosen_and_the_job_stopped_by_it():
    world = World(PICKING)
    job = world.train("r1")
    world.tick()
    play(world, "eval_accuracy", "train_loss")
    assert world.cluster.cancelled == [(job, 0)]
    assert (watch_of(world).terms.metric, watch_of(world).metric_now) == ("eval_accuracy", "eval_accuracy")
    assert remarks(world) == []


@pytest.mark.parametrize("metric", ["val/loss", "valLoss", "val_err", "val_logloss", "validation_0-logloss"])
def test_a_falling_loss_under_a_sweeping_pattern_costs_nobody_a_job(metric: str):
    """ "val*" = "max" was meant for scores; a run whose loss falls is best at its end."""
    world = World(replace(PICKING, metrics=("val*",), modes=(("val*", Mode.MAX),)))
    job = world.train("r1")
    play(world, metric, scores=(2.0, 1.6, 1.3, 1.0, 0.8, 0.6, 0.5, 0.45))
    assert world.cluster.cancelled == []
    assert (job, "direction") in remarks(world)


def test_the_choice_stays_whatever_the_run_logs_or_the_site_wishes_later():
    world = World(PICKING)
    world.train("r1", comment="evalstop=observe")
    play(world, "val_accuracy", scores=(0.1, 0.2))
    world.rules = replace(PICKING, metrics=("eval_accuracy",), modes=(("*", Mode.MIN),))
    play(world, "eval_accuracy", "val_accuracy", scores=(0.1, 0.2))
    assert (watch_of(world).metric_now, watch_of(world).mode_now) == ("val_accuracy", Mode.MAX)


def test_the_owner_may_name_another_one_at_any_time():
    world = World(PICKING)
    job = world.train("r1", comment="evalstop=observe")
    play(world, "eval_accuracy", "val_loss", scores=(0.1, 0.2))
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=observe evalstop_metric=val_loss")
    play(world, "eval_accuracy", "val_loss", scores=(0.1, 0.2))
    assert (watch_of(world).metric_now, watch_of(world).mode_now) == ("val_loss", Mode.MIN)


def test_an_ambiguity_is_said_once_and_nothing_done_until_the_owner_decides():
    world = World(PICKING)
    job = world.train("r1")
    play(world, "eval_rewards/accuracies", "eval_rewards/other")
    assert (world.cluster.cancelled, world.keeper.pins) == ([], set())
    assert remarks(world) == [(job, "unclear-metric")]
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_metric=eval_rewards/accuracies")
    world.tick()
    assert watch_of(world).metric_now == "eval_rewards/accuracies"


def test_a_direction_that_is_a_guess_is_observed_only_and_said():
    """The name says accuracy, and still nobody who could know has said which way is better."""
    world = World(replace(PICKING, modes=()))
    job = world.train("r1", comment="evalstop=enforce")
    play(world, "eval_accuracy")
    assert (world.cluster.cancelled, world.keeper.pins) == ([], set())
    assert remarks(world) == [(job, "direction")]


BETTER_AND_BETTER = (90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0)


@pytest.mark.parametrize(
    ("metric", "mode", "words"),
    [
        ("eval/fid", None, ""),
        ("", None, "evalstop_metric=eval/fid"),
        ("eval/distance", None, ""),
        ("", None, "evalstop_metric=eval/distance"),
        ("eval/accuracy", Mode.MAX, "evalstop_metric=eval/distance"),
        ("eval/FID", Mode.MAX, ""),
        ("", Mode.MAX, "evalstop_metric=eval/fid"),
        ("eval/accuracy", None, ""),
    ],
)
def test_to_name_a_metric_is_not_to_say_which_way_is_better(metric: str, mode: Mode | None, words: str):
    """Not even where the name speaks for what is assumed; and what is said of one metric is not said of another."""
    world = World(replace(RULES, metric=metric, mode=mode))
    job = world.train("r1", comment=f"evalstop=enforce {words}")
    play(world, words.partition("=")[2] or metric, scores=BETTER_AND_BETTER)
    assert (world.cluster.cancelled, world.keeper.pins) == ([], set())
    assert remarks(world) == [(job, "direction")]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (replace(RULES, metric="eval/quality"), ""),
        (replace(RULES, metric=""), "evalstop_metric=eval/quality"),
        (replace(RULES, metric="", mode=None), "evalstop_metric=eval/quality evalstop_mode=max"),
        (replace(RULES, metric="eval/quality", mode=None), "evalstop_mode=max"),
        (replace(RULES, metric="eval/quality", mode=None, modes=(("*/quality", Mode.MAX),)), ""),
    ],
)
def test_a_direction_that_is_said_counts_whoever_says_it(rules: Rules, words: str):
    world = World(rules)
    job = world.train("r1", comment=words)
    play(world, "eval/quality")
    assert world.cluster.cancelled == [(job, 0)]
    assert remarks(world) == []


def test_what_a_pattern_says_of_the_sites_own_metric_is_its_direction_unless_the_site_contradicts_itself():
    by_pattern = replace(RULES, metric="eval/fid", mode=None, modes=(("*/fid", Mode.MIN),))
    for rules, cancelled in ((by_pattern, 1), (replace(by_pattern, mode=Mode.MAX), 0)):
        world = World(rules)
        world.train("r1")
        play(world, "eval/fid", scores=tuple(1 - score for score in RISE_AND_FALL))
        assert len(world.cluster.cancelled) == cancelled


def test_a_direction_that_the_site_says_later_lifts_the_caution_and_turns_nothing():
    world = World(replace(RULES, metric="eval/quality", mode=None))
    job = world.train("r1")
    play(world, "eval/quality", scores=(0.1, 0.2))
    world.rules = replace(RULES, metric="eval/quality", mode=Mode.MIN)
    play(world, "eval/quality", scores=(0.1, 0.2, 0.3, 0.4, 0.5))
    assert world.cluster.cancelled == []
    world.rules = replace(RULES, metric="eval/quality")
    play(world, "eval/quality", scores=(0.1, 0.2, 0.3, 0.4, 0.5, 0.4, 0.3, 0.2))
    assert world.cluster.cancelled == [(job, 0)]


def test_the_trainers_own_word_on_the_direction_counts():
    world = World(replace(PICKING, modes=()))
    job = world.train("r1")
    world.tracker.runs["r1"].params |= {"metric_for_best_model": "accuracy", "greater_is_better": "True"}
    play(world, "eval_accuracy")
    assert world.cluster.cancelled == [(job, 0)]


def test_a_loss_that_falls_is_not_stopped_because_the_site_forgot_the_direction():
    world = World(replace(RULES, metric="eval_loss"))
    world.train("r1", comment="evalstop=enforce")
    play(world, "eval_loss", scores=(0.9, 0.8, 0.7, 0.6, 0.5))
    assert world.cluster.cancelled == []
    assert "direction" in {code for _, code in remarks(world)}


def test_several_datasets_under_one_key_are_refused_and_said():
    world = World(RULES)
    job = world.train("r1")
    for number in range(6):
        for offset, score in enumerate((0.9, 0.5, 0.7)):
            world.tracker.log("r1", number, score + number / 100, timestamp_ms=1000 * number + offset)
        world.tick()
    assert world.cluster.cancelled == []
    assert remarks(world) == [(job, "several-series")]


def test_evals_that_were_logged_without_a_step_are_said_once_with_what_to_do():
    """They are one eval for ever: nothing falls, and without a word nobody would know why."""
    world = World(RULES)
    job = world.train("r1")
    for score in RISE_AND_FALL:
        world.tracker.log("r1", 0, score, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick()
    assert world.cluster.cancelled == []
    assert remarks(world) == [(job, "one-step")]
    (text,) = said(world, "one-step")
    assert text.startswith("all 4 values were logged at step 0: ")


def test_until_the_run_has_a_metric_to_choose_nothing_is_said():
    world = World(PICKING)
    world.train("r1")
    play(world, "train_loss", scores=(3.0, 2.0))
    assert remarks(world) == []


def test_a_run_that_never_logs_what_the_site_means_is_said_after_an_hour():
    world = World(PICKING)
    job = world.train("r1")
    play(world, "train_loss", scores=(3.0, 2.0))
    world.clock.time_s += 4_000
    world.tick()
    assert remarks(world) == [(job, "unclear-metric")]
