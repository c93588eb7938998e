"""What every tracker behind RunFinder must do: subclass, and give a world of your own."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import pytest

from evalstopd.core.binding import RunFacts
from evalstopd.errors import Rejected
from evalstopd.ports import RunFinder

METRIC = "eval/score"


class FinderWorld(Protocol):
    """A tracker, and what users do to it."""

    finder: RunFinder

    def make_run(self, tags: Mapping[str, str], params: Mapping[str, str]) -> str:
        """Make a running run; return its id."""

    def log(self, run_id: str, metric: str, points: Iterable[tuple[int, float, int]]) -> None:
        """Log points: step, value, the client's timestamp in milliseconds."""

    def finish(self, run_id: str, status: str) -> None:
        """End a run."""

    def delete(self, run_id: str) -> None:
        """Delete a run."""


def tags(raw_id: str, cluster: str = "c") -> dict[str, str]:
    return {"slurm.job_id": raw_id, "slurm.cluster": cluster}


def runs(world: FinderWorld, raw_id: int, cluster: str = "c") -> tuple[RunFacts, ...]:
    (answer,) = world.finder.naming(cluster, [raw_id]).values()
    assert isinstance(answer, tuple), answer
    return answer


class RunFinderContract:
    """The contract; not collected itself."""

    @pytest.fixture
    def world(self) -> FinderWorld:
        raise NotImplementedError

    def test_each_job_gets_the_running_runs_that_name_it_with_what_they_hold(self, world: FinderWorld):
        mine = world.make_run({**tags("9001"), "evalstop.mac": "1.ab"}, {"output_dir": "out"})
        world.log(mine, METRIC, [(1, 0.5, 1)])
        other = world.make_run(tags("9002"), {})
        found = world.finder.naming("c", [9001, 9002, 9003])

        assert {raw: [run.run_id for run in answer] for raw, answer in found.items() if isinstance(answer, tuple)} == {
            9001: [mine],
            9002: [other],
            9003: [],
        }
        (facts,) = runs(world, 9001)
        assert (facts.tags["evalstop.mac"], facts.status, facts.metrics) == ("1.ab", "RUNNING", {METRIC})

    def test_only_the_very_id_on_the_very_cluster_counts(self, world: FinderWorld):
        for near in ("910", "91011", "9101 ", "%", "_101", "' or 1=1"):
            world.make_run(tags(near), {})
        world.make_run(tags("9101", "elsewhere"), {})
        world.make_run({"slurm.job_id": "9101"}, {})

        assert runs(world, 9101) == ()

    @pytest.mark.parametrize("status", ["FINISHED", "FAILED", "KILLED"])
    def test_a_run_that_is_over_is_not_found(self, world: FinderWorld, status: str):
        raw_id = {"FINISHED": 9201, "FAILED": 9202, "KILLED": 9203}[status]
        run_id = world.make_run(tags(str(raw_id)), {})
        world.finish(run_id, status)

        assert runs(world, raw_id) == ()

    def test_a_deleted_run_is_not_found(self, world: FinderWorld):
        """MLflow leaves it RUNNING."""
        world.delete(world.make_run(tags("9401"), {}))

        assert runs(world, 9401) == ()

    def test_a_flood_is_the_trouble_of_the_job_it_names_alone(self, world: FinderWorld):
        for _ in range(25):
            world.make_run(tags("9301"), {})
        calm = world.make_run(tags("9302"), {})
        found = world.finder.naming("c", [9301, 9302])

        assert isinstance(found[9301], Rejected)
        assert [run.run_id for run in found[9302] if isinstance(found[9302], tuple)] == [calm]  # type: ignore[union-attr]
