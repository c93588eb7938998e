"""The loop's stand-in for MLflow finds runs, and tells datasets apart, as the contracts want it."""

from collections.abc import Iterable, Mapping

import pytest

from evalstopd.core.datasets import Dataset
from tests.contracts.datasets_contract import DatasetsContract
from tests.contracts.run_finder_contract import RunFinderContract
from tests.fakes.tracker import FakeModel, FakeTracker


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


class FakeDatasets:
    """A stand-in whose runs log with datasets and logged models."""

    def __init__(self) -> None:
        self.source = FakeTracker()

    def make_run(self) -> str:
        run_id = f"r{len(self.source.runs)}"
        self.source.add_run(run_id)
        return run_id

    def make_model(self, run_id: str) -> str:
        model_id = f"m{sum(len(run.models) for run in self.source.runs.values())}"
        self.source.runs[run_id].models[model_id] = FakeModel(0)
        return model_id

    def log(self, run_id: str, metric: str, point: tuple[int, float, int]) -> None:
        step, value, stamp = point
        self.source.log(run_id, step, value, metric, stamp)

    def log_of(self, run_id: str, metric: str, point: tuple[int, float, int], dataset: Dataset, model_id: str) -> None:
        step, value, stamp = point
        self.source.log_of(run_id, step, value, dataset, key=metric, timestamp_ms=stamp, model=model_id)


class TestTheFakeTellsDatasetsApart(DatasetsContract):
    @pytest.fixture
    def world(self) -> FakeDatasets:
        return FakeDatasets()
