"""A training that starts over in its run and life while its stop is open: the stop describes what is gone."""

from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from evalstopd.report.rows import status_rows
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks_on

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
    "with the values of before": ((10, 0.1), (20, 0.4), (30, 0.8), (40, 0.7)),
    "with the values of before from a checkpoint": ((40, 0.7), (50, 0.6)),
    "with evals at other steps": ((5, 0.2), (15, 0.3), (25, 0.5), (35, 0.75)),
    "with evals at other steps from a checkpoint": ((35, 0.72), (45, 0.75)),
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


@pytest.mark.parametrize(
    ("first", "then"),
    [((10, 0.11), ((20, 0.41),)), ((10, 0.1), ((20, 0.4),)), ((5, 0.1), ((15, 0.4),))],
    ids=["other values", "the same values", "other steps"],
)
def test_a_notice_that_is_over_waits_while_one_eval_alone_says_that_the_training_began_again(
    first: tuple[int, float], then: tuple[tuple[int, float], ...]
):
    world, job = planned()
    world.clock.time_s += NOTICE_S
    log(world, job, first)
    world.tick()
    assert (intents(world), world.cluster.cancelled) == ([(job, State.PROMOTED)], [])
    why = f"an eval of step {first[0]} came after the decision: whether the training began again, the next tells"
    assert isinstance(world.store, MemoryStore)
    (watch,) = world.store.recent(10)
    assert [text for _, text in remarks_on(world, watch.key.text)].count(f"waits: {why}") == 1
    (row,) = status_rows(world.store, world.store, 10)
    assert row.why.startswith(f"waits: {why}; ")
    log(world, job, *then)
    assert intents(world) == [(job, State.ABANDONED)]
    assert world.cluster.cancelled == []


OTHERWISE = {
    "a late value for a step that had none": ((25, 0.5), (60, 0.5)),
    "a training that goes on from after the decision": ((60, 0.5), (70, 0.45), (60, 0.52), (70, 0.47)),
    "the newest step evaluated once more": ((50, 0.61), (60, 0.5)),
    "one value logged twice": ((30, 0.8), (60, 0.5)),
    "the best logged once more after each eval": ((30, 0.8), (60, 0.5), (30, 0.8), (70, 0.45)),
    "each eval logged twice": ((60, 0.5), (60, 0.5), (70, 0.45), (70, 0.45)),
    "late values one at a time": ((25, 0.5), (60, 0.5), (35, 0.5), (70, 0.45)),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_what_leaves_the_evals_that_were_decided_on_leaves_the_stop(how: str):
    world, job = planned()
    log(world, job, *OTHERWISE[how])
    assert intents(world) == [(job, State.WARNED)]
    log(world, job, (80, 0.4))
    world.tick(NOTICE_S)
    assert world.cluster.cancelled == [(job, 0)]


@pytest.mark.parametrize("late", [((5, 0.2), (15, 0.3)), ((10, 0.1), (20, 0.4), (30, 0.8))])
def test_values_that_come_late_with_the_times_at_which_they_were_logged_leave_the_stop(
    late: tuple[tuple[int, float], ...],
):
    world, job = planned()
    began_ms = int(world.clock.time_s * 1000) - 2_000
    for step, score in late:
        world.tracker.log("r1", step, score, timestamp_ms=began_ms + step)
        world.tick()
    assert intents(world) == [(job, State.WARNED)]
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
