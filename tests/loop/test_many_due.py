"""More runs than a pass reads: who has something open comes first, and nobody is left out for good."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.loop import reading
from evalstopd.ports import MetricsSource, RunQuery, RunReading
from tests.fakes.world import RULES, World


def test_those_with_something_open_come_first_and_all_are_read_in_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "MOST_A_PASS", 3)
    world = World(RULES)
    jobs = [world.train(f"r{n}", gpus=1) for n in range(8)]
    for step, score in enumerate((0.1, 0.8, 0.5, 0.3), 1):
        for n, job in enumerate(jobs):
            world.evaluate(job, f"r{n}", step * 10, score if n == 7 else step / 10)
        for _ in range(4):
            before = len(world.tracker.reads)
            world.tick()
            assert len(world.tracker.reads) - before <= 3 + 1
    assert {f"r{n}" for n in range(8)} <= set(world.tracker.reads)
    assert world.cluster.cancelled == [(jobs[7], 0)]


@dataclass
class Short:
    """A tracker that gets to the first few questions of a pass; the time is over before the others."""

    whole: MetricsSource
    most: int

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Read the first ones."""
        out: dict[RunQuery, RunReading | EvalstopError] = dict.fromkeys(queries, Unavailable("not asked"))
        return out | dict(self.whole.read(queries[: self.most]))


def test_whoever_was_not_reached_in_time_comes_first_in_the_next_pass():
    """All of them are due in each pass of their first ten minutes: in a fixed order the last would never be read."""
    world = World(RULES)
    jobs = [world.train(f"r{n}", gpus=1) for n in range(8)]
    ports = replace(world.ports(), metrics=Short(world.tracker, 3))
    for n, job in enumerate(jobs):
        world.evaluate(job, f"r{n}", 10, 0.5)
    for _ in range(4):
        world.tick(ports=ports)
    assert {watch.evals for watch in world.store.book(world.cluster.name).watches} == {1}


@dataclass
class Choosy:
    """A tracker too busy to answer about some runs; `asked` has the runs of each reading, in their order."""

    whole: MetricsSource
    refused: frozenset[str]
    asked: list[list[str]] = field(default_factory=list)

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Read the others."""
        self.asked.append([query.run_id for query in queries])
        out: dict[RunQuery, RunReading | EvalstopError] = dict.fromkeys(queries, Unavailable("asks for patience"))
        return out | dict(self.whole.read([query for query in queries if query.run_id not in self.refused]))


def test_whom_a_busy_tracker_put_off_costs_nobody_else_a_verdict_and_comes_first_in_the_next_pass():
    """Job 0 falls and job 5 does, too; 4 and 5 cannot be read in the pass that decides on 0."""
    world = World(replace(RULES, notice_s=10_000.0))
    jobs = [world.train(f"r{n}", gpus=1) for n in range(6)]
    choosy = Choosy(world.tracker, frozenset())
    ports = replace(world.ports(), metrics=choosy)
    for step, score in enumerate((0.1, 0.8, 0.7, 0.6), 1):
        choosy.refused = frozenset({"r4", "r5"} if step == 4 else ())
        for n, job in enumerate(jobs):
            world.evaluate(job, f"r{n}", step * 10, score if n in (0, 5) else step / 10)
        report = world.tick(900.0, ports)
    assert [each.key.job_id for each in world.store.book(world.cluster.name).intents] == [jobs[0]]
    assert report.troubles == ("MLflow: asks for patience",)
    choosy.refused = frozenset()
    choosy.asked.clear()
    world.tick(900.0, ports)
    # What has an open stop is read before everything else.
    assert choosy.asked[0] == ["r0", "r4", "r5", "r1", "r2", "r3"]
    assert {each.key.job_id for each in world.store.book(world.cluster.name).intents} == {jobs[0], jobs[5]}
