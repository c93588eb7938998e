"""What `explain` shows of a job whose run is not read any more: its evals as they were, and that they are old."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from evalstopd.errors import EvalstopError, PastCaps, Rejected
from evalstopd.ports import RunQuery, RunReading
from evalstopd.report.render import explanation
from evalstopd.report.rows import explain
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, World


@dataclass
class Refusing:
    """A tracker that says the same of every run."""

    error: EvalstopError

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        return dict.fromkeys(queries, self.error)


def shown(world: World, job: str) -> str:
    assert isinstance(world.store, MemoryStore)
    found = explain(world.store, world.store, job)
    assert found is not None
    console = Console(width=400, highlight=False)
    with console.capture() as capture:
        console.print(explanation(found), markup=False)
    return capture.get()


@pytest.mark.parametrize("error", [PastCaps("the run has too many points of the metric"), Rejected("no permission")])
def test_evals_of_a_run_that_is_not_read_any_more_are_shown_with_when_they_were_read(error: EvalstopError) -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY)
    assert "7 evals, 0 declines now\n" in shown(world, job)
    world.tick(1_000, replace(world.ports(), metrics=Refusing(error)))
    said = shown(world, job)
    assert (
        "7 evals, 0 declines, as its run was last read 1970-01-01 00:16:47Z: what came since is not read and not shown"
    ) in said
    assert f"no action: {error}" in said
    world.evaluate(job, "r1", 80, 0.9)
    world.tick(1_000)
    assert "8 evals, 0 declines now\n" in shown(world, job)


def test_a_run_that_never_could_be_read_has_no_evals_to_show() -> None:
    world = World()
    job = world.train("r1")
    world.tick(ports=replace(world.ports(), metrics=Refusing(PastCaps("too many points"))))
    assert "no evals: its run was never read\n" in shown(world, job)
