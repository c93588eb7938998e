"""Checkpoints that are logged models of their run: which are of a step, ready, and have files by the server's listing.

Nothing of them is read or kept here, so none of them is ever called a pin. MLflow 2 has no logged models: its runs say
so, and nothing more is asked.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Asks
from evalstopd.adapters.mlflow.problems import UNKNOWN_RUN, about_one
from evalstopd.core.registry import MODELS
from evalstopd.errors import CheckpointIncomplete, CheckpointMissing, Rejected
from evalstopd.ports import ModelQuery, ModelReport

_READY = "LOGGED_MODEL_READY"
_NAMED = re.compile(r"checkpoint-([0-9]{1,15})", re.ASCII)  # as Hugging Face's callback names them
_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,255}", re.ASCII)
_MOST_MODELS = 500
_MOST_FILES = 1_000
_MOST_FOLDERS = 50


@dataclass(frozen=True, slots=True)
class Model:
    """A logged model as MLflow shows it; `created_ms` by the server's clock.

    `step` is what the run says of it; None where that is 0, which MLflow also notes of a model whose step nobody told.
    """

    model_id: str
    name: str
    ready: bool
    created_ms: int
    step: int | None
    metrics: tuple[tuple[str, int, float], ...]

    def is_of(self, query: ModelQuery) -> bool:
        """Tell whether it is the step's: by Hugging Face's name, by the run's word, or by a score logged with it."""
        named = _NAMED.fullmatch(self.name)
        if named is not None:
            return int(named[1]) == query.step
        return self.step == query.step or bool(self._scores(query))

    def is_another(self, query: ModelQuery) -> bool:
        """Tell whether it was made too early, or scored otherwise: then it is another training's of the same step."""
        scores = self._scores(query)
        scored = not scores or any(math.isclose(score, query.score, rel_tol=1e-6) for score in scores)
        return self.created_ms < query.since_s * 1000 or not scored

    def _scores(self, query: ModelQuery) -> list[float]:
        return [value for name, step, value in self.metrics if (name, step) == (query.metric, query.step)]


@dataclass(frozen=True, slots=True)
class RunModels:
    """The Models port over MLflow's REST API."""

    http: Asks

    @about_one("the run's logged models")
    def find(self, query: ModelQuery) -> ModelReport:
        """Find the step's newest logged model that is ready and has files."""
        of_step = [each for each in self.models(query.run_id) if each.is_of(query)]
        if not of_step:
            raise CheckpointMissing(f"no logged model of step {query.step}")
        meant = [each for each in of_step if each.ready and not each.is_another(query)]
        if not meant:
            raise CheckpointIncomplete(f"no logged model of step {query.step} is ready and of this training")
        return self._listed(max(meant, key=lambda each: each.created_ms).model_id)

    @about_one("the logged model")
    def verify(self, run_id: str, uri: str) -> ModelReport:
        """Look at one of the run's again."""
        model_id = checked_id(uri.removeprefix(MODELS))
        try:
            item = fields.mapping(self.http.get(f"/logged-models/{model_id}", {}).body.get("model"), "model")
        except Rejected as error:
            if str(error) != UNKNOWN_RUN:
                raise
            raise CheckpointMissing("the logged model is not there any more") from None
        if not _is_of_run(item, run_id):
            raise Rejected("the logged model is another run's")
        if not _model(item, {}).ready:
            raise CheckpointIncomplete("the logged model is not ready any more")
        return self._listed(model_id)

    def models(self, run_id: str) -> list[Model]:
        """Return the run's own logged models, the newest 500 at most, newest first. Raises Rejected or Unavailable."""
        run = fields.mapping(self.http.get("/runs/get", {"run_id": run_id}).body.get("run"), "run")
        steps = dict(outputs_of(run))
        if not steps:
            return []
        experiment = fields.text(fields.mapping(run.get("info"), "run info").get("experiment_id"), "experiment id")
        asked = {
            "experiment_ids": [experiment],
            "filter": f"source_run_id = '{run_id}'",
            "order_by": [{"field_name": "creation_timestamp", "ascending": False}],
            "max_results": _MOST_MODELS,
        }
        listed = fields.items(self.http.post("/logged-models/search", asked).body.get("models"), "models")
        return [_model(fields.mapping(each, "model"), steps) for each in listed if _is_of_run(each, run_id)]

    def _listed(self, model_id: str) -> ModelReport:
        """Return the model with the server's listing of it. Raises CheckpointIncomplete where that shows no bytes."""
        files = self._files(model_id)
        size = sum(size for _, size in files)
        if not size:
            raise CheckpointIncomplete("the logged model has no files by the server's listing")
        listing = hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()
        return ModelReport(f"{MODELS}{model_id}", len(files), size, listing)

    def _files(self, model_id: str) -> list[tuple[str, int]]:
        """Return the paths and sizes of all files, folder by folder. Raises Rejected where they are too many."""
        files: list[tuple[str, int]] = []
        folders = [""]
        for folder in folders:
            for path, size in self._entries(model_id, folder):
                folders += [path] if size is None else []
                files += [] if size is None else [(path, size)]
            if len(files) > _MOST_FILES or len(folders) > _MOST_FOLDERS:
                raise Rejected(f"the logged model has more than {_MOST_FILES} files or {_MOST_FOLDERS} folders")
        return files

    def _entries(self, model_id: str, folder: str) -> Iterator[tuple[str, int | None]]:
        """Yield the paths of what is in a folder with their sizes in bytes; None for a folder."""
        asked = {"artifact_directory_path": folder} if folder else {}
        answer = self.http.get(f"/logged-models/{checked_id(model_id)}/artifacts/directories", asked).body
        for each in (fields.mapping(item, "artifact") for item in fields.items(answer.get("files"), "artifacts")):
            size = None if each.get("is_dir") else fields.int64(each.get("file_size", 0), "file size")
            yield fields.text(each.get("path"), "artifact's path"), size


def checked_id(model_id: str) -> str:
    """Return an id that MLflow could have given: it becomes part of an address. Raises Rejected."""
    if not _MODEL_ID.fullmatch(model_id):
        raise Rejected("the logged model's id is not one that MLflow gives")
    return model_id


def outputs_of(run: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """Yield the ids of a run's logged models with the steps that it gives them. Raises Unavailable."""
    outputs = fields.mapping(run.get("outputs", {}), "run outputs")
    for item in fields.items(outputs.get("model_outputs"), "outputs"):
        each = fields.mapping(item, "output")
        yield fields.text(each.get("model_id"), "model id"), fields.int64(each.get("step", 0), "step")


def inputs_of(run: Mapping[str, object]) -> Iterator[str]:
    """Yield the ids of a run's input models, which it did not make but logs values with. Raises Unavailable."""
    inputs = fields.mapping(run.get("inputs", {}), "run inputs")
    for item in fields.items(inputs.get("model_inputs"), "inputs"):
        yield fields.text(fields.mapping(item, "input").get("model_id"), "model id")


def _is_of_run(item: object, run_id: str) -> bool:
    """Tell whether it is this run's own: a run may name a model that another one made."""
    return fields.mapping(fields.mapping(item, "model").get("info"), "model info").get("source_run_id") == run_id


def _model(item: Mapping[str, object], steps: Mapping[str, int]) -> Model:
    info, data = fields.mapping(item.get("info"), "model info"), fields.mapping(item.get("data", {}), "model data")
    metrics = [fields.mapping(each, "metric") for each in fields.items(data.get("metrics"), "metrics")]
    model_id = fields.text(info.get("model_id"), "model id")
    return Model(
        model_id=model_id,
        name=fields.text(info.get("name"), "model name"),
        ready=info.get("status") == _READY,
        created_ms=fields.int64(info.get("creation_timestamp_ms", 0), "creation time"),
        step=steps.get(model_id) or None,
        metrics=tuple(_metric(each) for each in metrics),
    )


def _metric(each: Mapping[str, object]) -> tuple[str, int, float]:
    name, step = fields.text(each.get("key"), "metric name"), fields.int64(each.get("step", 0), "step")
    return name, step, fields.number(each.get("value", 0.0), "metric value")
