"""What real trainers were seen to do that would surprise a daemon, over the emulated ports: no job is wronged by it."""

from dataclasses import replace

import pytest

from evalstopd.core.watch import PinState
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.test_proofs import SEALS, put_seal, start
from tests.loop.told import intents, remarks


def second_run(world: World, job: str, run_id: str = "r2") -> None:
    """Let the job's process start a further run, which the plugin seals as it did the first."""
    run = world.tracker.add_run(run_id)
    run.tags |= {"slurm.job_id": str(world.cluster.jobs[job].raw_id), "slurm.cluster": "c"}
    put_seal(world, job, run_id)


def sealed(world: World) -> str:
    job = start(world)
    put_seal(world, job)
    return job


def pins(world: World) -> dict[int, PinState]:
    assert isinstance(world.store, MemoryStore)
    return {pin.step: pin.state for pin in world.store.pins_of([world.store.recent(1)[0].key])}


def test_an_evaluation_after_training_that_makes_a_run_of_its_own_stops_nothing() -> None:
    """HF has ended its run by then: the best model's score is logged at the last step, in a second run."""
    world = World(SEALS)
    job = sealed(world)
    world.play(job, "r1", (0.1, 0.3, 0.6, 0.63, 0.646, 0.63))
    world.tracker.runs["r1"].status = "FINISHED"
    second_run(world, job)
    world.evaluate(job, "r2", 60, 0.646)
    for _ in range(3):
        world.tick()

    assert world.cluster.cancelled == []
    assert remarks(world) == []


@pytest.mark.parametrize("rule", ["k-declines:k=1", "recommended"])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_training_that_starts_over_in_its_run_is_judged_by_what_it_logs_from_then_on(rule: str, every: int) -> None:
    """A script caught an error and began anew: its first evals, far better, stand before the earlier ones by step."""
    world = World(replace(RULES, rule=rule))
    job = world.train("r1")
    world.play(job, "r1", tuple(0.45 + number / 100 for number in range(10)))
    for number, score in enumerate((0.6, 0.61, 0.62, 0.63, 0.64, 0.65), 1):
        world.evaluate(job, "r1", 10 * number, score)
        if number % every == 0:
            world.tick()

    assert (world.cluster.cancelled, intents(world), remarks(world)) == ([], [], [])
    assert isinstance(world.store, MemoryStore)
    watch = world.store.recent(1)[0]
    assert (watch.evals, watch.best_step, watch.last_step) == (6, 60, 60)


def test_a_training_that_starts_over_in_its_run_is_stopped_by_its_own_falls_with_its_own_checkpoint() -> None:
    """It empties its folder first, as rotation by step would let nothing new stand beside the old."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY)
    world.keeper.checkpoints.clear()
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]
    assert isinstance(world.store, MemoryStore)
    (intent,) = world.store.intents_of([world.store.recent(1)[0].key])
    assert (intent.evidence.steps, intent.evidence.scores) == ((10, 20, 30, 40, 50), RISE_AND_FALL[:5])
    assert intent.evidence.best_step == 30


def test_of_two_trainings_one_after_the_other_in_one_job_each_is_judged_by_itself() -> None:
    """Fine-tuning ends high, RL starts low and rises under the same metric, its steps counted anew."""
    world = World(SEALS)
    job = sealed(world)
    world.play(job, "r1", (0.5, 0.7, 0.8, 0.9))
    world.tracker.runs["r1"].status = "FINISHED"
    second_run(world, job)
    world.play(job, "r2", HEALTHY)
    assert world.cluster.cancelled == []

    for step, score in ((80, 0.6), (90, 0.5)):
        world.evaluate(job, "r2", step, score)
        world.tick()
    assert world.cluster.cancelled == [(job, 0)]


def test_two_processes_with_a_run_each_are_ambiguous_and_that_is_said_once() -> None:
    """srun -n 2 of a script that is not distributed: two runs, the same keys, the same folder."""
    world = World(SEALS)
    job = sealed(world)
    second_run(world, job)
    for number, score in enumerate(RISE_AND_FALL, 1):
        for run_id in ("r1", "r2"):
            world.evaluate(job, run_id, number * 10, score)
        world.tick()

    assert (world.cluster.cancelled, world.keeper.pins) == ([], set())
    assert {code for _, code in remarks(world)} <= {"ambiguous-runs"}


def test_of_nested_runs_the_one_with_the_metric_is_judged_and_its_folder_is_the_owners_to_name() -> None:
    """The parent has the parameters and no evals; the child has the evals and no parameters."""
    for words, stopped in (("", False), ("evalstop_output=out-r2", True)):
        world = World(SEALS)
        job = start(world, comment=words)
        put_seal(world, job)
        second_run(world, job)
        world.tracker.runs["r2"].tags["mlflow.parentRunId"] = "r1"
        world.tracker.runs["r2"].params.clear()
        world.play(job, "r2", RISE_AND_FALL)

        assert (world.cluster.cancelled == [(job, 0)]) is stopped
        assert stopped or pins(world)[30] is PinState.LOST


def test_a_run_without_a_folder_is_pinned_from_where_lightning_saves() -> None:
    world = World(SEALS)
    job = sealed(world)
    world.tracker.runs["r1"].params.clear()
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(job, "r1", number * 10, score)
        world.keeper.save(f"{world.cluster.jobs[job].work_dir}/1/r1/checkpoints", number * 10)
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_what_names_the_experiment_or_the_run_leads_to_no_other_folder() -> None:
    world = World(SEALS)
    job = sealed(world)
    world.tracker.runs["r1"].params.clear()
    world.tracker.runs["r1"].experiment_id = "../../etc"
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == []
    assert isinstance(world.store, MemoryStore)
    assert world.store.recent(1)[0].output_dir is None


def test_verls_own_parameter_names_its_folder() -> None:
    world = World(SEALS)
    job = sealed(world)
    world.tracker.runs["r1"].params = {"trainer/default_local_dir": "out-r1"}
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_best_eval_before_the_first_step_has_no_checkpoint_and_makes_a_warning_of_the_stop() -> None:
    """eval_on_start: a point at step 0, and never a checkpoint-0."""
    world = World()
    job = world.train("r1")
    world.tracker.log("r1", 0, 0.9, timestamp_ms=int(world.clock.time_s * 1000))
    world.tick()
    world.play(job, "r1", (0.8, 0.7, 0.6, 0.5))

    assert world.cluster.cancelled == []
    assert pins(world)[0] is PinState.LOST


def test_shards_that_several_processes_write_are_pinned_once_a_later_eval_shows_that_none_does_any_more() -> None:
    """DeepSpeed: nothing in the folder tells; the processes wait for each other before training goes on."""
    world = World()
    world.keeper.sharded = True
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    assert pins(world)[30] is PinState.WANTED
    assert world.keeper.fresh == [("c-1-1000", 10), ("c-1-1000", 20)]
    for number, score in enumerate(RISE_AND_FALL[3:], 4):
        world.evaluate(job, "r1", number * 10, score)
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]
    assert world.keeper.best == {"c-1-1000": 30}


def test_a_checkpoint_that_a_later_life_saves_anew_is_waited_for_although_the_earlier_one_went_further() -> None:
    """What the earlier life logged at later steps says nothing of what this one has still to save."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", (0.1, 0.2, 0.3, 0.31, 0.32, 0.33))
    world.cluster.requeue(job)
    world.cluster.start()
    world.tick()
    world.tracker.log("r1", 30, 0.9, timestamp_ms=int(world.clock.time_s * 1000))
    world.tick()
    assert pins(world)[30] is PinState.WANTED
    world.keeper.save(f"{world.cluster.jobs[job].work_dir}/out-r1", 30, keep_last=9, at_s=world.clock.time_s)
    world.tick()

    assert pins(world)[30] is PinState.PINNED


def test_a_late_run_whose_first_point_is_far_on_is_judged_from_there() -> None:
    world = World(replace(SEALS, tick_s=60.0))
    job = sealed(world)
    for _ in range(30):
        world.tick(60)
    for number, score in enumerate(RISE_AND_FALL):
        world.evaluate(job, "r1", 1100 + 100 * number, score)
        for _ in range(10):
            world.tick(60)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_step_that_has_no_point_is_no_decline() -> None:
    """A reward that is NaN in all rows is None to TRL, and Hugging Face drops it: the step is not logged at all."""
    world = World()
    job = world.train("r1")
    for step, score in ((10, 0.1), (20, 0.4), (40, 0.8), (70, 0.7), (80, 0.75)):
        world.evaluate(job, "r1", step, score)
        world.tick()

    assert world.cluster.cancelled == []


def test_a_test_set_scored_under_the_same_name_after_training_is_one_eval_and_stops_nothing() -> None:
    """Lightning's test() logged the key of the validation at step 250, after 249."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY)
    world.tracker.runs["r1"].status = "FINISHED"
    world.evaluate(job, "r1", 71, 0.4)
    for _ in range(3):
        world.tick()

    assert world.cluster.cancelled == []


def test_a_job_whose_best_checkpoint_rotates_away_with_its_second_successor_is_stopped_with_it_kept() -> None:
    """save_total_limit=2 and no metric_for_best_model: at the second decline the best one is gone."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]
    folder = f"{world.cluster.jobs[job].work_dir}/out-r1"
    assert (folder, "checkpoint-30") not in world.keeper.checkpoints
    assert ("c-1-1000", 30) in {(name, step) for name, step in world.keeper.pins} or world.keeper.best


def test_a_second_life_with_a_run_of_its_own_goes_on_with_the_curve_where_steps_repeat() -> None:
    """Requeued from step 300 though 320 and 360 were evaluated: logged again, with equal values, in a new run."""
    world = World(replace(SEALS, rule="k-declines:k=3"))
    job = sealed(world)
    for step, score in ((240, 0.5), (280, 0.7), (320, 0.6463), (360, 0.6367)):
        world.evaluate(job, "r1", step, score)
        world.tick()
    world.clock.time_s += 100
    world.cluster.requeue(job)
    world.tick()
    world.cluster.start()
    second_run(world, job)
    for step, score in ((320, 0.6463), (360, 0.6367)):
        world.evaluate(job, "r2", step, score)
        world.tick()
    assert world.cluster.cancelled == []
    world.evaluate(job, "r2", 400, 0.630)
    world.tick()

    assert world.cluster.cancelled == [(job, 1)]


def test_a_metric_that_is_visible_before_its_checkpoint_is_there_waits_for_it() -> None:
    """Large checkpoints: the eval was read first in 12 of 12, each time."""
    world = World()
    job = world.train("r1")
    folder = f"{world.cluster.jobs[job].work_dir}/out-r1"
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.log("r1", number * 10, score, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick()
        world.keeper.save(folder, number * 10, at_s=world.clock.time_s)

    assert world.cluster.cancelled == [(job, 0)]
    assert pins(world)[30] is PinState.PUBLISHED
