"""What every tracker behind RunList must do: subclass, and give a world of your own."""

from collections.abc import Iterable
from typing import Protocol

import pytest

from evalstopd.errors import Rejected
from evalstopd.ports import RunList

HOSTILE = 'runs of 50 % "x" é [bold]'


class ListWorld(Protocol):
    """A tracker, and what users do to it."""

    runs: RunList

    def make_experiment(self, name: str) -> str:
        """Make an experiment; return its id."""

    def add_run(self, experiment_id: str, start_ms: int) -> str:
        """Start a run in an experiment; return its id."""

    def log(self, run_id: str, metric: str, points: Iterable[tuple[int, float, int]]) -> None:
        """Log points: step, value, the client's timestamp in milliseconds."""

    def delete(self, run_id: str) -> None:
        """Delete a run."""


class RunListContract:
    """The contract; not collected itself."""

    @pytest.fixture
    def world(self) -> ListWorld:
        raise NotImplementedError

    def test_an_experiment_is_found_by_its_name_and_by_its_id(self, world: ListWorld):
        experiment = world.make_experiment(HOSTILE)
        run_id = world.add_run(experiment, 1)
        assert [run.run_id for run in world.runs.runs_of(HOSTILE, 10)] == [run_id]
        assert [run.run_id for run in world.runs.runs_of(experiment, 10)] == [run_id]

    def test_runs_come_newest_first_without_the_deleted_and_those_of_others(self, world: ListWorld):
        mine, others = world.make_experiment("order"), world.make_experiment("others")
        runs = [world.add_run(mine, start) for start in (5, 1, 9)]
        world.add_run(others, 7)
        world.delete(world.add_run(mine, 8))
        assert [run.run_id for run in world.runs.runs_of("order", 10)] == [runs[2], runs[0], runs[1]]

    def test_no_more_come_than_were_asked_for(self, world: ListWorld):
        experiment = world.make_experiment("many")
        for start in range(5):
            world.add_run(experiment, start)
        assert len(world.runs.runs_of("many", 3)) == 3

    def test_the_facts_name_what_was_logged(self, world: ListWorld):
        run_id = world.add_run(world.make_experiment("logged"), 1)
        world.log(run_id, "eval/score", [(1, 0.5, 1)])
        (run,) = world.runs.runs_of("logged", 10)
        assert run.metrics == {"eval/score"}

    @pytest.mark.parametrize("name", ["nobody's", "999999", "", "\x00", "a" * 9_000])
    def test_an_unknown_experiment_is_rejected(self, world: ListWorld, name: str):
        with pytest.raises(Rejected):
            world.runs.runs_of(name, 10)
