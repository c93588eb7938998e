"""The loop's stand-in for MLflow finds runs as the contract wants it."""

from collections.abc import Iterable, Mapping

import pytest

from tests.contracts.run_finder_contract import RunFinderContract
from tests.fakes.tracker import FakeTracker


class FakeTrackerWorld:
    """A stand-in that numbers its runs."""

    def __init__(self) -> None:
        self.finder = FakeTracker()

    def make_run(self, tags: Mapping[str, str], params: Mapping[str, str]) -> str:
        run_id = f"r{len(self.finder.runs)}"
        self.finder.add_run(run_id).tags |= tags
        return run_id

    def log(self, run_id: str, metric: str, points: Iterable[tuple[int, float, int]]) -> None:
        for step, value, stamp in points:
            self.finder.log(run_id, step, value, metric, stamp)

    def finish(self, run_id: str, status: str) -> None:
        self.finder.runs[run_id].status = status

    def delete(self, run_id: str) -> None:
        self.finder.runs[run_id].deleted = True


class TestTheFakeKeepsTheContract(RunFinderContract):
    @pytest.fixture
    def world(self) -> FakeTrackerWorld:
        return FakeTrackerWorld()
