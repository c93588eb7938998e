"""A history without points that were read before shows nothing of the run: nothing is done by it, and that is said."""

from dataclasses import replace

import pytest

from evalstopd.core.binding import RunFacts
from evalstopd.core.intent import State
from evalstopd.core.model import Mode, Point, Rung
from evalstopd.core.watch import Terms
from evalstopd.loop.vanished import lacks
from evalstopd.ports import RunReading
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import intents

NOTICE_S = 30.0
LACKS = "lacks points that were read before: it is not taken"
TERMS = Terms(Rung.ENFORCE, "k-declines:k=2", "score", Mode.MAX)


@pytest.mark.parametrize("left", [0, 3, len(RISE_AND_FALL) - 1])
def test_no_stop_is_done_by_a_history_without_points_that_were_read_before(left: int) -> None:
    world = World(replace(RULES, notice_s=NOTICE_S))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)
    assert intents(world) == [(job, State.WARNED)]
    held = world.tracker.runs["r1"].points["score"]
    world.tracker.runs["r1"].points["score"] = held[:left]
    said = world.store.book("c").said
    report = world.tick(2 * NOTICE_S)
    assert world.cluster.cancelled == []
    assert report.troubles == (f"MLflow: the history of job {job}'s run {LACKS}",)
    assert "1 watched, 0 read, 0 new evals" in report.summary
    assert world.store.book("c").said == said
    world.tracker.runs["r1"].points["score"] = held
    assert world.tick().troubles == ()
    assert world.cluster.cancelled == [(job, 0)]


def test_of_many_histories_one_job_is_named() -> None:
    world = World()
    for number in range(3):
        world.play(world.train(f"r{number}"), f"r{number}", RISE_AND_FALL[:2])
    for run in world.tracker.runs.values():
        run.points["score"] = []
    report = world.tick(1_000)
    assert report.troubles == (f"MLflow: the history of job 1's run (and 2 more) {LACKS}",)


def test_a_stop_whose_history_stays_without_them_is_given_up_in_the_end() -> None:
    world = World(replace(RULES, notice_s=NOTICE_S))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)
    world.tracker.runs["r1"].points["score"] = []
    world.tick(2 * NOTICE_S)
    world.tick(RULES.stale_s)
    assert intents(world) == [(job, State.ABANDONED)]
    assert world.cluster.cancelled == []


def test_another_run_of_the_job_need_not_have_the_points_of_the_first() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.tracker.add_run("r2").tags["slurm.job_id"] = str(world.cluster.jobs[job].raw_id)
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], comment="mlflow_run=r2")
    report = world.tick()
    assert (report.troubles, report.counts["read"]) == ((), 1)


def point(step: int, metric: str = "score", run_id: str = "r1", dataset: str = "") -> Point:
    return Point(run_id, step, 0.5, 1_000 + step, metric=metric, dataset=dataset)


def reading(*points: Point, dataset: str = "", untold: str = "") -> RunReading:
    facts = RunFacts("r1", "RUNNING", False, "", {}, {}, frozenset({"score"}))
    return RunReading(facts, tuple(replace(each, metric="", dataset="") for each in points), (), dataset, untold)


WHOLE = (point(1), point(2), point(3))


def test_points_that_come_again_with_more_are_whole() -> None:
    assert not lacks(reading(*WHOLE, point(4)), TERMS, WHOLE)
    assert not lacks(reading(*WHOLE), TERMS, ())
    assert lacks(reading(point(1), point(3), point(4)), TERMS, WHOLE)


def test_a_number_that_is_none_comes_again_too() -> None:
    odd = replace(point(2), value=float("nan"))
    assert not lacks(reading(odd), TERMS, [odd])
    assert lacks(reading(), TERMS, [odd])


@pytest.mark.parametrize("other", [point(1, metric="loss"), point(1, run_id="r0"), point(-1)])
def test_what_is_of_another_metric_or_run_or_below_step_0_need_not_be_there(other: Point) -> None:
    assert not lacks(reading(*WHOLE), TERMS, [*WHOLE, other])
    assert not lacks(reading(), TERMS, [other])


def test_of_a_dataset_its_own_points_are_expected_but_for_the_newest_step() -> None:
    asked = replace(TERMS, dataset="clean")
    own, others = [point(step, dataset="clean@1") for step in (1, 2)], [point(3, dataset="noisy@2")]
    assert not lacks(reading(own[0], dataset="clean@1"), asked, [*own, *others])
    assert lacks(reading(own[1], dataset="clean@1"), asked, [*own, *others])
    assert not lacks(reading(), asked, own)
    assert lacks(reading(own[0], untold="no model tells"), asked, own)
