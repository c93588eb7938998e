"""The stand-in for logged models keeps the contract, so that tests of the loop mean something."""

from collections.abc import Mapping

import pytest

from tests.contracts.models_contract import METRIC, ModelsContract
from tests.fakes.models import FakeModels
from tests.fakes.tracker import FakeModel, FakeTracker


class FakeWorld:
    def __init__(self) -> None:
        self.tracker = FakeTracker()
        self.models = FakeModels(self.tracker)
        self.made: dict[str, str] = {}

    def make_run(self) -> str:
        run_id = f"r{len(self.tracker.runs)}"
        self.tracker.add_run(run_id)
        return run_id

    def log_model(self, run_id: str, step: int, name: str = "model", *, ready: bool = True) -> str:
        model_id = f"m-{len(self.made)}"
        self.made[model_id] = run_id
        made = FakeModel(step, name, ready, made_s=float(len(self.made)), files={})
        self.tracker.runs[run_id].models[model_id] = made
        return model_id

    def score(self, run_id: str, model_id: str, step: int, value: float) -> None:
        self.tracker.runs[run_id].models[model_id].scores[(METRIC, step)] = value

    def upload(self, model_id: str, files: Mapping[str, int]) -> None:
        self.tracker.runs[self.made[model_id]].models[model_id].files |= files

    def delete(self, model_id: str) -> None:
        del self.tracker.runs[self.made[model_id]].models[model_id]


class TestFakeModels(ModelsContract):
    @pytest.fixture
    def world(self) -> FakeWorld:
        return FakeWorld()
