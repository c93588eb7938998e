"""What is said of a stop that is not decided because the evals it would rest on are history."""

from dataclasses import replace

import pytest
from rich.console import Console

from evalstopd.report.render import explanation
from evalstopd.report.rows import Explanation, StatusRow, explain, status_rows
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, World


def row(world: World, job: str) -> StatusRow:
    assert isinstance(world.store, MemoryStore)
    return next(each for each in status_rows(world.store, world.store, 9) if each.job == job)


def explained(world: World, job: str) -> Explanation:
    assert isinstance(world.store, MemoryStore)
    found = explain(world.store, world.store, job)
    assert found is not None
    return found


def shown(found: Explanation) -> str:
    console = Console(width=400, highlight=False)
    with console.capture() as capture:
        console.print(explanation(found), markup=False)
    return capture.get()


@pytest.fixture
def requeued() -> World:
    """A job that declined to a stop under a veto, and was requeued without it."""
    world = World()
    job = world.train("r1", comment="evalstop=keep")
    world.play(job, "r1", (0.8, 0.7, 0.6))
    world.clock.time_s += 100
    world.cluster.requeue(job)
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], comment="mlflow_run=r1")
    world.cluster.start()
    world.tick()
    return world


def test_a_decline_of_an_earlier_life_is_said_to_stop_nothing(requeued: World) -> None:
    said = (
        "no stop is decided: the rule says stop at step 30, but that eval is history, in the run before this life of "
        "the job (restarts: 1) first read it; only a later one can stop the job"
    )
    assert requeued.cluster.cancelled == []
    assert (row(requeued, "1").state, row(requeued, "1").why) == ("watched", said)
    assert explained(requeued, "1").withheld == said
    assert said in shown(explained(requeued, "1"))


def test_once_an_eval_of_the_present_life_decides_nothing_is_withheld(requeued: World) -> None:
    requeued.evaluate("1", "r1", 40, 0.5)
    requeued.tick()
    assert requeued.cluster.cancelled == [("1", 1)]
    assert explained(requeued, "1").withheld == ""
    assert "history" not in row(requeued, "1").why


def test_a_recovery_in_the_present_life_withholds_nothing(requeued: World) -> None:
    requeued.evaluate("1", "r1", 40, 0.9)
    requeued.tick()
    assert (row(requeued, "1").why, explained(requeued, "1").withheld) == ("", "")


def test_of_a_job_that_ended_nothing_is_said(requeued: World) -> None:
    requeued.cluster.finish("1")
    requeued.tick()
    requeued.tick()
    assert row(requeued, "1").state == "ended"
    assert explained(requeued, "1").withheld == ""


def test_what_a_run_that_is_taken_over_held_before_is_said_to_stop_nothing() -> None:
    world = World()
    first = world.train("r1", comment="evalstop=keep")
    world.play(first, "r1", RISE_AND_FALL)
    world.cluster.finish(first)
    world.tick()
    world.tick()
    second = world.train("r1")
    world.tick()
    assert world.cluster.cancelled == []
    assert explained(world, second).withheld == row(world, second).why
    assert row(world, second).why.startswith(
        "no stop is decided: the rule says stop at step 70, but that eval is history, in the run before"
    )
