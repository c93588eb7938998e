"""What MLflow's words do not mean: each trap by its name, over the whole loop."""

from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from evalstopd.core.model import StopAction
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks

HOUR_MS = 3_600_000


def log_all(world: World, scores: tuple[float, ...], *, first: int = 1, skew_ms: int = 0, tick: bool = True) -> None:
    """Let the run of the one job log and save; a tick after each eval, or one for all."""
    (job,) = world.cluster.jobs.values()
    for number, score in enumerate(scores, first):
        at_ms = int(world.clock.time_s * 1000) + number + skew_ms
        world.tracker.log("r1", number * 10, score, timestamp_ms=at_ms)
        world.keeper.save(f"{job.work_dir}/out-r1", number * 10, at_s=world.clock.time_s)
        if tick:
            world.tick()
    world.tick()


def test_a_status_of_finished_or_killed_says_nothing_of_the_job():
    """MLflow sets FINISHED on an interrupt and even on an uncaught exception outside of `with`."""
    for status in ("FINISHED", "FAILED", "KILLED"):
        world = World()
        job = world.train("r1")
        world.tracker.runs["r1"].status = status
        log_all(world, RISE_AND_FALL)
        assert world.cluster.cancelled == [(job, 0)]


def test_a_status_of_running_does_not_keep_an_ended_job_alive():
    """After SIGTERM a run stays RUNNING for ever."""
    world = World()
    job = world.train("r1")
    log_all(world, HEALTHY)
    world.cluster.finish(job)
    world.tick()
    log_all(world, (0.1, 0.05, 0.01), first=20)
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert world.cluster.cancelled == []


def test_a_run_deleted_in_mid_flight_is_refused_and_said():
    world = World()
    job = world.train("r1")
    log_all(world, HEALTHY[:3])
    world.tracker.runs["r1"].deleted = True
    log_all(world, (0.2, 0.1, 0.05), first=4)
    assert world.cluster.cancelled == []
    assert remarks(world) == [(job, "deleted-run")]


@pytest.mark.parametrize("how", ["deleted", "purged", "unreachable"])
def test_a_run_deleted_while_a_notice_is_open_ends_the_stop_and_that_is_what_is_said(how: str):
    """Deleted, it is still shown; purged (`mlflow gc`), it is unknown; an outage is no fault of its own."""
    world = World(replace(RULES, notice_s=100_000.0))
    job = world.train("r1")
    log_all(world, RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    if how == "deleted":
        world.tracker.runs["r1"].deleted = True
    elif how == "purged":
        del world.tracker.runs["r1"]
    else:
        world.tracker.runs["r1"].broken = True
    world.tick(600.0)
    assert intents(world) == [(job, State.WARNED)]
    world.tick(600.0)
    why = {"deleted": "the run that the job claims is deleted, so ", "purged": "unknown run, so ", "unreachable": ""}[
        how
    ]
    assert intents(world) == [(job, State.ABANDONED)]
    assert ("abandoned", f"{why}its evals could not be read for too long") in events(world)
    assert events(world)[-1] == ("told", "the owner was told (given-up)")
    assert world.cluster.cancelled == []


def test_of_nested_runs_only_the_named_one_is_read():
    """The parent that the comment names has no evals; the child's are not taken for its own."""
    world = World()
    world.train("r1")
    world.tracker.add_run("child").tags["mlflow.parentRunId"] = "r1"
    for number, score in enumerate(RISE_AND_FALL):
        world.tracker.log("child", number, score)
        world.tick()
    assert world.cluster.cancelled == []
    assert "child" not in world.tracker.reads


def test_steps_that_restart_within_one_run_are_seen_although_its_latest_value_does_not_move():
    """MLflow's latest value is that of the largest step: who reads it alone is blind until that is passed."""
    world = World()
    job = world.train("r1")
    log_all(world, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    world.cluster.requeue(job)
    world.cluster.start()
    world.tick()
    log_all(world, (0.1, 0.9, 0.4, 0.3))
    decided = [text for kind, text in events(world) if kind == "planned"]
    assert [text.partition(", ")[2] for text in decided] == ["from the best 0.9 at step 20 to 0.3 at step 40"]


def test_a_client_whose_clock_is_an_hour_ahead_or_behind_changes_no_verdict():
    for skew_ms in (-HOUR_MS, 0, HOUR_MS):
        world = World()
        job = world.train("r1")
        world.clock.time_s += 7_200
        world.tick()
        for number, score in enumerate(RISE_AND_FALL, 1):
            log_all(world, (score,), first=number, skew_ms=skew_ms if number % 2 else 0)
        assert world.cluster.cancelled == [(job, 0)]


def test_points_that_arrive_late_and_out_of_order_decide_by_step():
    """Healthy by step, a wild up and down by time of arrival."""
    world = World()
    world.train("r1")
    for number in (7, 1, 5, 2, 6, 3, 4):
        log_all(world, (number / 10,), first=number)
    assert world.cluster.cancelled == []


def test_what_asynchronous_logging_has_not_sent_yet_is_not_taken_for_an_end_of_the_decline():
    """An eval is missing, then it comes: the verdict is that of the whole curve, one tick later."""
    world = World()
    job = world.train("r1")
    log_all(world, RISE_AND_FALL[:3])
    log_all(world, RISE_AND_FALL[4:5], first=5)
    assert world.cluster.cancelled == []
    log_all(world, RISE_AND_FALL[3:4], first=4)
    assert world.cluster.cancelled == [(job, 0)]


def test_a_nan_neither_counts_as_a_decline_nor_hides_one():
    world = World()
    job = world.train("r1")
    log_all(world, (0.1, 0.4, 0.8, float("nan"), 0.7, float("inf"), 0.6))
    assert world.cluster.cancelled == [(job, 0)]
    calm = World()
    calm.train("r1")
    log_all(calm, (0.1, float("nan"), 0.4, float("nan"), float("-inf"), 0.8))
    assert calm.cluster.cancelled == []


def test_a_value_logged_twice_at_one_step_is_one_eval_and_the_later_one():
    world = World()
    world.train("r1")
    for number in range(1, 7):
        world.tracker.log("r1", number, -5.0, timestamp_ms=10 * number)
        world.tracker.log("r1", 1, 0.1, timestamp_ms=10 * number)
        world.tracker.log("r1", number, number / 10, timestamp_ms=10 * number + 1_000_000)
    world.tick()
    assert world.cluster.cancelled == []


def test_a_run_whose_job_goes_on_later_is_not_set_killed():
    """`start_run(run_id=)` of the next life would set it RUNNING again, and find a run that is over."""
    world = World(replace(RULES, action=StopAction.REQUEUE_HOLD))
    job = world.train("r1")
    log_all(world, RISE_AND_FALL)
    for _ in range(3):
        world.tick(60.0)
    assert world.cluster.jobs[job].restarts == 1
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert any("its status was left alone" in text for kind, text in events(world) if kind == "run")


def test_a_run_that_another_process_ended_first_keeps_its_own_status():
    world = World()
    job = world.train("r1")
    log_all(world, RISE_AND_FALL[:4])
    world.tracker.runs["r1"].status = "FAILED"
    log_all(world, RISE_AND_FALL[4:], first=5)
    world.tick()
    assert world.cluster.cancelled == [(job, 0)]
    assert world.tracker.runs["r1"].status == "FAILED"
