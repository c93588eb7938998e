"""What the tracker's adapter remembers of a run may be hours old: no stop rests on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError
from evalstopd.ports import Ports, RunQuery, RunReading
from tests.fakes.tracker import FakeRun, FakeTracker
from tests.fakes.world import RISE_AND_FALL, RULES, World


@dataclass
class Remembering:
    """A tracker that tells a run's facts as they were first read, unless it is asked for them as they are now."""

    tracker: FakeTracker
    held: dict[str, RunFacts] = field(default_factory=dict)
    asked_anew: int = 0

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        return {query: self._as_held(query, answer) for query, answer in self.tracker.read(queries).items()}

    def _as_held(self, query: RunQuery, answer: RunReading | EvalstopError) -> RunReading | EvalstopError:
        if query.fresh:
            self.asked_anew += 1
        if not isinstance(answer, RunReading) or query.fresh:
            return answer
        held = self.held.setdefault(query.run_id, answer.facts)
        return replace(answer, facts=replace(held, metrics=answer.facts.metrics))


def ports_of(world: World) -> tuple[Ports, Remembering]:
    metrics = Remembering(world.tracker)
    return replace(world.ports(), metrics=metrics), metrics


def deleted(run: FakeRun) -> None:
    run.deleted = True


def named_another_job(run: FakeRun) -> None:
    run.tags["slurm.job_id"] = "999"


def anothers(run: FakeRun) -> None:
    run.user = "mallory"


@pytest.mark.parametrize("change", [deleted, named_another_job, anothers])
def test_a_stop_without_notice_waits_for_the_run_as_it_is_now(change: Callable[[FakeRun], None]):
    world = World(RULES)
    ports, _ = ports_of(world)
    job = world.train("r1")
    run = world.tracker.runs["r1"]
    scores = RISE_AND_FALL[:4]
    world.play(job, "r1", scores, ports)
    change(run)
    writes = len(world.tracker.writes)
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    report = world.tick(ports=ports)

    assert any("its run has changed" in text for text in report.troubles)
    assert world.cluster.cancelled == []
    assert len(world.tracker.writes) == writes
    for _ in range(3):
        world.tick(ports=ports)
    if change is deleted:
        assert world.cluster.cancelled == []
    else:
        # By its comment the job still names the run: it is stopped, but a run that names another is not written to.
        assert world.cluster.cancelled == [(job, 0)]
    if change is named_another_job:
        assert len(world.tracker.writes) == writes


def test_a_run_that_stood_still_is_stopped_in_the_same_pass_after_one_look_more():
    world = World(RULES)
    ports, metrics = ports_of(world)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4], ports)
    anew = metrics.asked_anew
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    world.tick(ports=ports)
    assert world.cluster.cancelled == [(job, 0)]
    assert metrics.asked_anew == anew + 1


def test_a_run_that_cannot_be_read_again_is_not_acted_on():
    world = World(RULES)
    ports, metrics = ports_of(world)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4], ports)
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    inner = metrics._as_held
    metrics._as_held = lambda query, answer: (  # type: ignore[method-assign]
        EvalstopError("half an answer") if query.fresh else inner(query, answer)
    )
    world.tick(ports=ports)
    assert world.cluster.cancelled == []
