"""What every tracker that reads metrics must do where one name holds the values of several datasets."""

import math
from collections.abc import Sequence
from typing import Protocol

import pytest

from evalstopd.core.datasets import Dataset
from evalstopd.ports import MetricsSource, RunQuery, RunReading

METRIC = "eval/accuracy"
CLEAN, NOISY = Dataset("clean", "c1"), Dataset("noisy", "n1")
STEPS = (10, 20, 30, 40)


class World(Protocol):
    """A tracker with runs, and what their training scripts do."""

    source: MetricsSource

    def make_run(self) -> str:
        """Make a run."""

    def make_model(self, run_id: str) -> str:
        """Make a logged model of a run; return its id."""

    def log(self, run_id: str, metric: str, point: tuple[int, float, int]) -> None:
        """Log a point (step, value, milliseconds) with nothing else."""

    def log_of(self, run_id: str, metric: str, point: tuple[int, float, int], dataset: Dataset, model_id: str) -> None:
        """Log a point with a dataset and a logged model."""


class DatasetsContract:
    """The contract; not collected itself."""

    @pytest.fixture
    def world(self) -> World:
        raise NotImplementedError

    @pytest.fixture
    def run_id(self, world: World) -> str:
        """A run that evaluates on two datasets at each step, each step with a logged model of its own."""
        run_id = world.make_run()
        evaluate(world, run_id, STEPS)
        return run_id

    @pytest.mark.parametrize("asked", ["clean", "c1", "clean@c1"])
    def test_the_points_of_the_dataset_that_is_named_come_alone(self, world: World, run_id: str, asked: str):
        found = read(world, run_id, asked)
        assert [(point.step, point.value) for point in found.points] == [(step, step / 100) for step in STEPS]
        assert (found.dataset, found.untold) == ("clean@c1", "")
        assert [point.value for point in read(world, run_id, "noisy").points] == [1 - step / 100 for step in STEPS]

    def test_where_none_is_named_all_points_come_and_the_datasets_are_told(self, world: World, run_id: str):
        found = read(world, run_id, "")
        assert (len(found.points), found.dataset) == (2 * len(STEPS), "")
        assert "2 datasets: clean (digest c1), noisy (digest n1)" in found.untold
        assert "evalstop_dataset=" in found.untold
        assert "rules.dataset" in found.untold

    def test_a_name_that_none_bears_tells_those_that_there_are(self, world: World, run_id: str):
        found = read(world, run_id, "held-out")
        assert (len(found.points), found.dataset) == (2 * len(STEPS), "")
        assert "held-out is none of 2 datasets: clean (digest c1), noisy (digest n1)" in found.untold

    def test_a_name_of_two_contents_means_neither_and_the_digest_one(self, world: World):
        """What MLflow calls every dataset that nobody named is `dataset`."""
        run_id = world.make_run()
        evaluate(world, run_id, STEPS, Dataset("dataset", "aa"), Dataset("dataset", "bb"))
        assert "means 2 datasets: dataset (digest aa), dataset (digest bb)" in read(world, run_id, "dataset").untold
        found = read(world, run_id, "bb")
        assert (found.dataset, found.points[0].value) == ("dataset@bb", 1 - STEPS[0] / 100)

    def test_one_model_may_tell_all_and_be_another_runs(self, world: World):
        """A run's values are told by whichever model they were logged with; another run's with it are another's."""
        run_id, other = world.make_run(), world.make_run()
        model_id = world.make_model(other)
        for step in STEPS:
            world.log_of(run_id, METRIC, (step, 0.5 + step / 100, 1_000 * step), CLEAN, model_id)
            world.log_of(run_id, METRIC, (step, 0.25, 1_000 * step + 1), NOISY, model_id)
            world.log_of(other, METRIC, (step, 0.5 + step / 100, 1_000 * step), NOISY, model_id)
        found = read(world, run_id, "clean")
        assert [point.value for point in found.points] == [0.5 + step / 100 for step in STEPS]

    def test_a_value_without_a_dataset_leaves_nothing_told_apart(self, world: World, run_id: str):
        world.log(run_id, METRIC, (20, 0.75, 20_500))
        found = read(world, run_id, "clean")
        assert (len(found.points), found.dataset) == (2 * len(STEPS) + 1, "")
        assert "1 of 9 values were logged without a dataset or a logged model" in found.untold

    def test_at_the_newest_step_a_value_without_one_is_waited_for(self, world: World, run_id: str):
        """MLflow writes the value first, and what the model tells of it after that."""
        world.log(run_id, METRIC, (50, 0.75, 50_000))
        found = read(world, run_id, "clean")
        assert ([point.step for point in found.points], found.untold) == (list(STEPS), "")
        world.log(run_id, METRIC, (60, 0.75, 60_000))
        assert read(world, run_id, "clean").dataset == ""

    def test_values_without_any_model_are_never_told_apart(self, world: World):
        run_id = world.make_run()
        for step in STEPS:
            for place, value in enumerate((0.5, 0.25)):
                world.log(run_id, METRIC, (step, value, 1_000 * step + place))
        for asked in ("", "clean"):
            found = read(world, run_id, asked)
            assert (found.dataset, len(found.points)) == ("", 2 * len(STEPS))
            assert "no logged model tells of which dataset each value is" in found.untold

    def test_a_metric_of_one_series_is_read_as_ever_whatever_is_asked(self, world: World):
        run_id = world.make_run()
        for step in STEPS:
            world.log(run_id, METRIC, (step, step / 100, 1_000 * step))
        found = read(world, run_id, "clean")
        assert (len(found.points), found.dataset, found.untold) == (len(STEPS), "", "")

    def test_what_was_told_apart_before_is_from_its_first_point_on(self, world: World):
        run_id = world.make_run()
        world.log_of(run_id, METRIC, (10, 0.5, 1_000), CLEAN, world.make_model(run_id))
        assert read(world, run_id, "clean", apart=True).dataset == "clean@c1"
        world.log(run_id, METRIC, (20, 0.5, 2_000))
        world.log(run_id, METRIC, (30, 0.5, 3_000))
        found = read(world, run_id, "clean", apart=True)
        assert (found.dataset, len(found.points)) == ("", 3)
        assert "1 of 3 values" in found.untold

    def test_from_the_first_step_with_two_values_on_the_named_one_is_told_apart(self, world: World):
        run_id = world.make_run()
        evaluate(world, run_id, STEPS[:1])
        found = read(world, run_id, "noisy")
        assert ([point.value for point in found.points], found.dataset) == ([1 - STEPS[0] / 100], "noisy@n1")
        assert read(world, run_id, "").untold == ""

    def test_the_one_that_is_named_is_told_apart_however_far_it_lags_behind(self, world: World):
        run_id = world.make_run()
        model_id = world.make_model(run_id)
        for place, step in enumerate((*STEPS, 50)):
            world.log_of(run_id, METRIC, (step, 0.5 + step / 1000, 1_000 * place), NOISY, model_id)
            if place >= 3:
                behind = STEPS[place - 3]
                world.log_of(run_id, METRIC, (behind, 0.9 + behind / 1000, 1_000 * place + 500), CLEAN, model_id)
        found = read(world, run_id, "clean")
        assert ([(each.step, each.value) for each in found.points], found.dataset) == (
            [(10, 0.91), (20, 0.92)],
            "clean@c1",
        )
        assert [each.step for each in read(world, run_id, "noisy").points] == [*STEPS, 50]

    @pytest.mark.parametrize("own", [True, False])
    def test_while_there_are_anothers_values_alone_the_one_that_is_named_is_said_to_be_missing(
        self, world: World, own: bool
    ):
        run_id = world.make_run()
        model_id = world.make_model(run_id if own else world.make_run())
        for number, step in enumerate(STEPS[:3], 1):
            world.log_of(run_id, METRIC, (step, 0.5, 1_000 * number), NOISY, model_id)
            found = read(world, run_id, "clean")
            # At the first two its own value may only be late.
            assert (len(found.points), found.dataset) == (3 if number == 3 else 0, "")
            assert ("clean is none of the dataset noisy (digest n1)" in found.untold) is (number == 3)
            assert read(world, run_id, "").untold == ""

    def test_standard_errors_are_those_of_the_dataset(self, world: World, run_id: str):
        for step in STEPS:
            model_id = world.make_model(run_id)
            # The other dataset's are nearer in time.
            world.log_of(run_id, f"{METRIC}_stderr", (step, 0.01, 1_000 * step + 400), CLEAN, model_id)
            world.log_of(run_id, f"{METRIC}_stderr", (step, 0.02, 1_000 * step), NOISY, model_id)
        assert {point.stderr for point in read(world, run_id, "clean").points} == {0.01}
        assert {point.stderr for point in read(world, run_id, "noisy").points} == {0.02}

    def test_what_is_no_score_needs_no_dataset(self, world: World, run_id: str):
        world.log(run_id, METRIC, (20, math.nan, 20_500))
        assert len(read(world, run_id, "clean").points) == len(STEPS)

    @pytest.mark.parametrize("name", ["a\nb\x1b[31m", "n" * 500, "\u202eevil"])
    def test_a_hostile_name_is_no_datasets_and_costs_one_printable_line(self, world: World, name: str):
        run_id = world.make_run()
        evaluate(world, run_id, STEPS, CLEAN, Dataset(name, "h1"))
        for asked in ("", "clean", "h1"):
            found = read(world, run_id, asked)
            assert found.dataset == ""
            assert found.untold.isascii()
            assert found.untold.isprintable()
            assert len(found.untold) < 400

    def test_a_flood_of_datasets_is_none_to_choose_from(self, world: World):
        run_id = world.make_run()
        model_id = world.make_model(run_id)
        for number in range(120):
            of = Dataset(f"d{number:03}", "x")
            world.log_of(run_id, METRIC, (number % 4, number / 120, 1_000 * (number % 4) + number), of, model_id)
        assert "more than 100 datasets" in read(world, run_id, "d001").untold


def evaluate(world: World, run_id: str, steps: Sequence[int], first: Dataset = CLEAN, second: Dataset = NOISY) -> None:
    """Log a rising and a falling series, of two datasets, with a logged model of each step."""
    for step in steps:
        model_id = world.make_model(run_id)
        world.log_of(run_id, METRIC, (step, step / 100, 1_000 * step), first, model_id)
        world.log_of(run_id, METRIC, (step, 1 - step / 100, 1_000 * step + 1), second, model_id)


def read(world: World, run_id: str, asked: str, *, apart: bool = False) -> RunReading:
    query = RunQuery(run_id, METRIC, dataset=asked, apart=apart)
    answer = world.source.read([query])[query]
    assert isinstance(answer, RunReading), answer
    return answer
