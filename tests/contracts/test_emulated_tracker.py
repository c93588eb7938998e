"""The simulator's tracker keeps to the contract that the real one keeps to."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pytest
from evalstopd_sim.emulated.tracker import EmulatedRun, EmulatedTracker

from evalstopd.core.model import Point
from tests.contracts.metrics_contract import MetricsContract, World


class EmulatedTrackerWorld:
    """Runs in a dictionary, their points as a test logs them."""

    def __init__(self) -> None:
        self.runs: dict[str, EmulatedRun] = {}
        self.points: dict[tuple[str, str], list[Point]] = defaultdict(list)
        self.source = EmulatedTracker(self.runs.get)

    def make_run(self, tags: Mapping[str, str], params: Mapping[str, str]) -> str:
        run_id = f"run-{len(self.runs)}"
        self.runs[run_id] = EmulatedRun(
            lambda metric: tuple(self.points.get((run_id, metric), ())),
            lambda: frozenset(metric for logged, metric in self.points if logged == run_id),
            dict(tags),
            dict(params),
        )
        return run_id

    def log(self, run_id: str, metric: str, points: Iterable[tuple[int, float, int]]) -> None:
        self.points[run_id, metric] += [Point(run_id, step, value, at_ms) for step, value, at_ms in points]

    def finish(self, run_id: str, status: str) -> None:
        self.runs[run_id].status = status

    def delete(self, run_id: str) -> None:
        self.runs[run_id].deleted = True


class TestEmulatedTracker(MetricsContract):
    """The contract over the emulated tracker."""

    @pytest.fixture
    def world(self) -> World:
        return EmulatedTrackerWorld()
