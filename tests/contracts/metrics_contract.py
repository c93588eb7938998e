"""What every tracker behind MetricsSource and RunWriter must do: subclass, and give a world of your own."""

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import pytest

from evalstopd.core.binding import PARAMS
from evalstopd.core.curve import is_score
from evalstopd.errors import EvalstopError, Rejected
from evalstopd.ports import MetricsSource, RunQuery, RunReading, RunWriter

METRIC = "eval/gold_reward"
HOSTILE = "a\nb\x1b[31m [bold]|=cmd|' <script> ümläut 🙂 \\n"


class Source(MetricsSource, RunWriter, Protocol):
    """A tracker with both of its ports."""


class World(Protocol):
    """A tracker, and what a user's training script does to it."""

    source: Source

    def make_run(self, tags: Mapping[str, str], params: Mapping[str, str]) -> str:
        """Start a run; return its id."""

    def log(self, run_id: str, metric: str, points: Iterable[tuple[int, float, int]]) -> None:
        """Log points: step, value, the client's timestamp in milliseconds."""

    def finish(self, run_id: str, status: str) -> None:
        """Set a run's status, as the job's own exit does."""

    def delete(self, run_id: str) -> None:
        """Delete a run."""


class MetricsContract:
    """The contract; not collected itself."""

    @pytest.fixture
    def world(self) -> World:
        raise NotImplementedError

    def test_asking_for_nothing_gives_nothing(self, world: World):
        assert world.source.read([]) == {}

    def test_every_point_comes_with_its_step_value_and_timestamp(self, world: World):
        """Out of order, repeated steps and negative values included: what counts is the core's business."""
        run_id = world.make_run({}, {})
        logged = [(10, 0.25, 1_000), (30, -0.5, 2_000), (20, 1e-300, 3_000), (20, 0.75, 4_000), (0, 0.0, 5_000)]
        world.log(run_id, METRIC, logged)
        world.log(run_id, "train/loss", [(1, 9.0, 1_000)])
        points = reading(world, run_id).points
        assert sorted((p.step, p.value, p.timestamp_ms) for p in points) == sorted(logged)
        assert {point.run_id for point in points} == {run_id}

    def test_standard_errors_logged_beside_a_metric_come_with_its_points(self, world: World):
        """Same step, nearest in time; what is no standard error counts as not logged."""
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(10, 0.5, 1_000), (20, 0.6, 2_000), (20, 0.7, 9_000), (30, 0.8, 3_000)])
        world.log(run_id, f"{METRIC}_stderr", [(10, 0.03, 1_001), (20, 0.04, 2_001), (20, 0.05, 9_001)])
        world.log(run_id, f"{METRIC}_stderr", [(30, math.nan, 3_000), (30, 0.0, 3_001), (40, 0.06, 4_000)])
        errors = {(point.step, point.value): point.stderr for point in reading(world, run_id).points}
        assert errors == {(10, 0.5): 0.03, (20, 0.6): 0.04, (20, 0.7): 0.05, (30, 0.8): None}

    def test_a_share_gets_its_errors_from_the_items_logged_beside_it(self, world: World):
        """Each eval by its own count; an error that is logged itself is taken instead."""
        run_id = world.make_run({}, {})
        share, other = "eval/pass_rate", "eval/accuracy"
        for name in (share, other):
            world.log(run_id, name, [(10, 0.5, 1_000), (20, 0.5, 2_000)])
            world.log(run_id, f"{name}_n", [(10, 100, 1_000), (20, 400, 2_000)])
        world.log(run_id, f"{other}_stderr", [(10, 0.3, 1_000)])
        readings = world.source.read([RunQuery(run_id, share), RunQuery(run_id, other)])
        errors = {q.metric: [p.stderr for p in r.points] for q, r in readings.items() if isinstance(r, RunReading)}
        assert errors == {share: [pytest.approx(0.05), pytest.approx(0.025)], other: [0.3, None]}

    def test_what_the_site_knows_of_the_items_counts_where_nothing_is_logged(self, world: World):
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(10, 0.5, 1_000), (20, 1.5, 2_000)])
        query = RunQuery(run_id, METRIC, items=100)
        answer = world.source.read([query])[query]
        assert isinstance(answer, RunReading)
        assert [point.stderr for point in answer.points] == [pytest.approx(0.05), None]

    def test_the_proxy_comes_beside_the_points_where_it_was_asked_for(self, world: World):
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(1, 0.5, 1)])
        world.log(run_id, "train/reward", [(1, 7.0, 1), (2, 8.0, 2)])
        asked, other = RunQuery(run_id, METRIC, "train/reward"), RunQuery(run_id, METRIC, "nobody's")
        readings = world.source.read([asked, other])
        assert {q: [p.value for p in r.proxy] for q, r in readings.items() if isinstance(r, RunReading)} == {
            asked: [7.0, 8.0],
            other: [],
        }

    def test_nan_and_infinities_arrive_and_are_no_scores(self, world: World):
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(1, math.nan, 1), (2, math.inf, 2), (3, -math.inf, 3), (4, 0.5, 4)])
        points = {point.step: point.value for point in reading(world, run_id).points}
        assert set(points) == {1, 2, 3, 4}
        assert [step for step, value in points.items() if is_score(value)] == [4]

    def test_a_metric_that_was_never_logged_has_no_points(self, world: World):
        run_id = world.make_run({}, {})
        assert reading(world, run_id).points == ()

    def test_an_unknown_run_is_rejected_and_costs_no_other_run(self, world: World):
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(1, 0.5, 1)])
        unknown, known = RunQuery("0" * 32, METRIC), RunQuery(run_id, METRIC)
        readings = world.source.read([unknown, known])
        assert isinstance(readings[unknown], Rejected)
        assert isinstance(readings[known], RunReading)

    @pytest.mark.parametrize("run_id", ["", "../" * 8, "a b", "x\n", "é", "\udcff", "a" * 5_000, "%00", "x&y=z#"])
    def test_an_id_that_no_run_can_have_is_rejected_in_one_printable_line(self, world: World, run_id: str):
        error = answer_to(world, run_id, METRIC)
        assert isinstance(error, Rejected)
        assert is_one_line(error)

    @pytest.mark.parametrize("metric", ["", "m" * 251, "\udcff", "a\nb\x00", "../x?run_id=1&", "mean@4", "🙂"])
    def test_a_metric_with_a_hostile_name_has_no_points_or_is_refused(self, world: World, metric: str):
        run_id = world.make_run({}, {})
        answer = answer_to(world, run_id, metric)
        assert answer.points == () if isinstance(answer, RunReading) else is_one_line(answer)

    @pytest.mark.parametrize(
        "metric",
        [
            "val-core/openai/gsm8k/acc/mean_at_4",
            "profiling/Time taken: GRPOTrainer.compute_loss",
            "Güte der Läufe/评估.1_b-c",
            "m" * 250,
        ],
    )
    def test_a_metric_is_read_by_any_name_that_mlflow_allows(self, world: World, metric: str):
        run_id = world.make_run({}, {})
        world.log(run_id, metric, [(1, 0.5, 1), (2, 0.25, 2)])
        answer = answer_to(world, run_id, metric)
        assert isinstance(answer, RunReading)
        assert [(point.step, point.value) for point in answer.points] == [(1, 0.5), (2, 0.25)]
        assert answer.facts.metrics == {metric}

    def test_the_facts_are_those_of_the_run(self, world: World):
        run_id = world.make_run(
            {"slurm.job_id": "17", "note": HOSTILE}, {"output_dir": "out", "metric_for_best_model": HOSTILE}
        )
        facts = reading(world, run_id).facts
        assert (facts.run_id, facts.status, facts.deleted) == (run_id, "RUNNING", False)
        assert (facts.tags["slurm.job_id"], facts.tags["note"]) == ("17", HOSTILE)
        assert (facts.params["output_dir"], facts.params["metric_for_best_model"]) == ("out", HOSTILE)
        assert facts.metrics == frozenset()

    def test_of_its_parameters_a_run_tells_all_that_anything_is_decided_by_and_no_other(self, world: World):
        said = dict.fromkeys(PARAMS, "said")
        run_id = world.make_run({}, {**said, "learning_rate": "1e-4"})
        assert reading(world, run_id).facts.params == said

    def test_the_facts_name_the_metrics_that_were_logged(self, world: World):
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(1, math.nan, 1)])
        world.log(run_id, "train/loss", [(1, 0.5, 1), (2, 0.4, 2)])
        assert reading(world, run_id).facts.metrics == {METRIC, "train/loss"}

    def test_one_query_twice_is_one_reading(self, world: World):
        query = RunQuery(world.make_run({}, {}), METRIC)
        assert set(world.source.read([query] * 2)) == {query}

    def test_two_metrics_of_one_run_are_two_readings(self, world: World):
        """A stranger's job may name the run with another metric: each job gets the points it asked for, no others."""
        run_id = world.make_run({}, {})
        world.log(run_id, METRIC, [(1, 0.5, 1)])
        world.log(run_id, "length", [(2, 90.0, 1)])
        readings = world.source.read([RunQuery(run_id, METRIC), RunQuery(run_id, "length")])
        assert {q.metric: [p.step for p in r.points] for q, r in readings.items() if isinstance(r, RunReading)} == {
            METRIC: [1],
            "length": [2],
        }

    def test_tags_are_set_letter_for_letter_and_again(self, world: World):
        run_id = world.make_run({"evalstop.state": "old", "mine": "kept"}, {})
        for _ in range(2):
            world.source.tag(run_id, {"evalstop.state": "stopped", "evalstop.reason": HOSTILE})
        tags = reading(world, run_id).facts.tags
        assert (tags["evalstop.state"], tags["evalstop.reason"], tags["mine"]) == ("stopped", HOSTILE, "kept")

    def test_a_killed_run_still_takes_tags(self, world: World):
        run_id = world.make_run({}, {})
        world.source.mark_killed(run_id)
        world.source.tag(run_id, {"evalstop.best_step": "20"})
        assert reading(world, run_id).facts.tags["evalstop.best_step"] == "20"

    def test_a_running_run_is_set_killed_once(self, world: World):
        run_id = world.make_run({}, {})
        assert [world.source.mark_killed(run_id), world.source.mark_killed(run_id)] == ["KILLED", "KILLED"]
        assert reading(world, run_id).facts.status == "KILLED"

    @pytest.mark.parametrize("status", ["FINISHED", "FAILED"])
    def test_a_run_that_ended_by_itself_keeps_its_status(self, world: World, status: str):
        run_id = world.make_run({}, {})
        world.finish(run_id, status)
        assert world.source.mark_killed(run_id) == status
        assert reading(world, run_id).facts.status == status

    def test_a_deleted_run_says_so_and_takes_no_writes(self, world: World):
        run_id = world.make_run({}, {})
        world.delete(run_id)
        assert reading(world, run_id).facts.deleted
        with pytest.raises(Rejected):
            world.source.tag(run_id, {"evalstop.state": "stopped"})
        with pytest.raises(Rejected):
            world.source.mark_killed(run_id)

    def test_writes_to_an_unknown_run_are_rejected(self, world: World):
        with pytest.raises(Rejected):
            world.source.tag("0" * 32, {"evalstop.state": "stopped"})
        with pytest.raises(Rejected):
            world.source.mark_killed("0" * 32)


def answer_to(world: World, run_id: str, metric: str) -> RunReading | EvalstopError:
    query = RunQuery(run_id, metric)
    return world.source.read([query])[query]


def reading(world: World, run_id: str) -> RunReading:
    answer = answer_to(world, run_id, METRIC)
    assert isinstance(answer, RunReading), answer
    return answer


def is_one_line(error: EvalstopError) -> bool:
    return str(error).isascii() and str(error).isprintable() and len(str(error)) < 500
