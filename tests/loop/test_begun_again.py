"""A training that starts over in its run and life while its stop is open: the stop describes what is gone."""

from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents

NOTICE_S = 1000.0


def planned(notice_s: float = NOTICE_S) -> tuple[World, str]:
    """Return a world with an open stop: decided on at step 50, its best at step 30 with 0.8."""
    world = World(replace(RULES, notice_s=notice_s))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    return world, job


def log(world: World, job: str, *evals: tuple[int, float], each_s: float = 1.0) -> None:
    """Log evals, with a tick after each if time goes on between them, else with one after all."""
    for step, score in evals:
        world.clock.time_s += 0.1
        world.evaluate(job, "r1", step, score)
        if each_s:
            world.tick(each_s)
    if not each_s:
        world.tick()


AGAIN = {
    "from the first step": ((10, 0.11), (20, 0.41), (30, 0.82)),
    "from a checkpoint after the best": ((40, 0.71), (50, 0.75)),
    "at the very step of the decision": ((60, 0.5), (50, 0.61), (60, 0.65)),
}


@pytest.mark.parametrize("each_s", [1.0, 0.0], ids=["eval by eval", "all at once"])
@pytest.mark.parametrize("how", AGAIN)
def test_a_training_that_starts_over_withdraws_the_stop_and_that_is_what_is_said(how: str, each_s: float):
    """The best step may be the same as before: it is another eval's."""
    world, job = planned()
    log(world, job, *AGAIN[how], each_s=each_s)
    first = min(step for step, _ in AGAIN[how])
    assert intents(world) == [(job, State.ABANDONED)]
    assert [text for kind, text in events(world) if kind == "abandoned"] == [
        f"the training began again at step {first}: the evals that were decided on are no longer its own"
    ]
    world.tick(2 * NOTICE_S)
    assert world.cluster.cancelled == []


def test_a_notice_that_is_over_waits_while_one_eval_alone_says_that_the_training_began_again():
    world, job = planned()
    world.clock.time_s += NOTICE_S
    log(world, job, (10, 0.11))
    world.tick()
    assert (intents(world), world.cluster.cancelled) == ([(job, State.PROMOTED)], [])
    log(world, job, (20, 0.41))
    assert intents(world) == [(job, State.ABANDONED)]
    assert world.cluster.cancelled == []


OTHERWISE = {
    "a late value for a step that had none": ((25, 0.5), (60, 0.5)),
    "a training that goes on from after the decision": ((60, 0.5), (70, 0.45), (60, 0.52), (70, 0.47)),
    "the newest step evaluated once more": ((50, 0.61), (60, 0.5)),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_what_leaves_the_evals_that_were_decided_on_leaves_the_stop(how: str):
    world, job = planned()
    log(world, job, *OTHERWISE[how])
    assert intents(world) == [(job, State.WARNED)]
    log(world, job, (80, 0.4))
    world.tick(NOTICE_S)
    assert world.cluster.cancelled == [(job, 0)]


def test_a_training_that_had_begun_again_before_the_decision_is_the_one_that_was_decided_on():
    world = World(replace(RULES, notice_s=NOTICE_S))
    job = world.train("r1")
    world.play(job, "r1", (0.1, 0.2, 0.3))
    log(world, job, *((number * 10, score + 0.01) for number, score in enumerate(RISE_AND_FALL, 1)))
    world.tick(NOTICE_S)
    assert world.cluster.cancelled == [(job, 0)]


def test_another_run_of_the_same_life_that_starts_over_withdraws_the_stop_too():
    world, job = planned()
    world.tracker.add_run("r2", **{"slurm.job_id": str(world.cluster.jobs[job].raw_id)})
    world.cluster.set_comment(job, "mlflow_run=r2")
    world.tick()
    for step, score in ((10, 0.1), (20, 0.4), (30, 0.79)):
        world.tracker.log("r2", step, score, timestamp_ms=int(world.clock.time_s * 1000) + step)
    world.tick()
    assert intents(world) == [(job, State.ABANDONED)]
    assert "the training began again at step 10" in dict(events(world))["abandoned"]
