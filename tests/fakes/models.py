"""Logged models over the small MLflow's runs: found by step, ready or not, with files or without."""

from dataclasses import dataclass, field

from evalstopd.core.registry import MODELS
from evalstopd.errors import CheckpointIncomplete, CheckpointMissing, Rejected, Unavailable
from evalstopd.ports import ModelQuery, ModelReport
from tests.fakes.tracker import FakeModel, FakeTracker


@dataclass(slots=True)
class FakeModels:
    """The Models port over a dictionary; `asked` are the runs that were looked at."""

    tracker: FakeTracker
    down: bool = False
    asked: list[str] = field(default_factory=list)

    def find(self, query: ModelQuery) -> ModelReport:
        """Find the newest of a step."""
        self._ask(query.run_id)
        models = self.tracker.runs[query.run_id].models.items()
        of_step = {uri: each for uri, each in models if _is_of(each, query)}
        if not of_step:
            raise CheckpointMissing("no logged model of the step")
        meant = {uri: each for uri, each in of_step.items() if each.ready and not _is_another(each, query)}
        if not meant:
            raise CheckpointIncomplete("none is ready")
        newest = max(meant, key=lambda uri: meant[uri].made_s)
        return _report(newest, meant[newest])

    def verify(self, run_id: str, uri: str) -> ModelReport:
        """Look again."""
        self._ask(run_id)
        model_id = uri.removeprefix(MODELS)
        owners = [name for name, run in self.tracker.runs.items() if model_id in run.models]
        if not owners:
            raise CheckpointMissing("it is gone")
        if owners != [run_id]:
            raise Rejected("it is another run's")
        model = self.tracker.runs[run_id].models[model_id]
        if not model.ready:
            raise CheckpointIncomplete("not ready any more")
        return _report(model_id, model)

    def _ask(self, run_id: str) -> None:
        self.asked.append(run_id)
        if self.down:
            raise Unavailable("MLflow does not answer")


def _is_of(model: FakeModel, query: ModelQuery) -> bool:
    if model.name.startswith("checkpoint-"):
        return model.name == f"checkpoint-{query.step}"
    return (model.step == query.step != 0) or (query.metric, query.step) in model.scores


def _is_another(model: FakeModel, query: ModelQuery) -> bool:
    scored = model.scores.get((query.metric, query.step), query.score) == query.score
    return model.made_s < query.since_s or not scored


def _report(model_id: str, model: FakeModel) -> ModelReport:
    size = sum(model.files.values())
    if not size:
        raise CheckpointIncomplete("no files")
    return ModelReport(f"{MODELS}{model_id}", len(model.files), size, repr(sorted(model.files.items())))
