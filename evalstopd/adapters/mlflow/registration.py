"""One published checkpoint becomes one version of a registered model, whatever happened to earlier tries.

The version is looked for by a tag that names the intent before it is made; MLflow itself makes another one for each
call. Its source is the logged model that was kept; else, the first that MLflow takes: a logged model of the run for the
step, the checkpoint where it lies (MLflow takes only what lies within the run's artifacts), a copy among the run's
artifacts where the site allows that.
The registered model is made once MLflow has taken a source, which it looks at first. A server with rights does not look
at it before there is a model of ours: there, one that no version came of is removed again.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.copying import Copier
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.models import RunModels
from evalstopd.adapters.mlflow.problems import NO_PERMISSION, UNKNOWN_RUN, about_one
from evalstopd.adapters.mlflow.runs import fit
from evalstopd.core.registry import ALIAS, MODELS, is_logged, model_name
from evalstopd.errors import CheckpointIncomplete, CheckpointMissing, Rejected, Unavailable
from evalstopd.ports import ModelQuery, Promoted

KEY_TAG = "evalstop.key"
_REFUSED_SOURCE = "INVALID_PARAMETER_VALUE"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a version's files are; `model_id` for a logged model."""

    uri: str
    model_id: str = ""


@dataclass(frozen=True, slots=True)
class Registration:
    """Registers checkpoints under names made of a site's template. `copier` brings files in, where that is allowed."""

    http: Http
    template: str
    copier: Copier | None = None

    @about_one("what the registry has of the checkpoint")
    def register(self, checkpoint: Promoted) -> str:
        """Return `models:/NAME/VERSION` once version and alias are there. Raises Rejected or Unavailable."""
        name = model_name(self.template, checkpoint.key, checkpoint.account)
        aliased = self._aliased(name)
        try:
            version = self._held(name, checkpoint) or self._made(name, checkpoint)
        except Rejected:
            # Why there is no version is what is told, whatever is said to this.
            with suppress(Rejected):
                self._tidy(name, checkpoint)
            raise
        # Only ever forward: a version that had to wait must not take the alias from a later one.
        if aliased < version:
            self.http.post("/registered-models/alias", {"name": name, "alias": ALIAS, "version": str(version)})
            if self._aliased(name) < version:
                raise Unavailable(f"MLflow took the alias {ALIAS} and does not show it")
        return f"models:/{name}/{version}"

    def _aliased(self, name: str) -> int:
        """Return the version that the alias is at; 0 without one, or without a registered model."""
        listed = [fields.mapping(each, "alias") for each in fields.items(self._model(name).get("aliases"), "aliases")]
        return next((_number(each.get("version")) for each in listed if each.get("alias") == ALIAS), 0)

    def _model(self, name: str) -> Mapping[str, object]:
        """Return the registered model as MLflow shows it; nothing where there is none."""
        try:
            shown = self.http.get("/registered-models/get", {"name": name})
        except Rejected as error:
            if str(error) != UNKNOWN_RUN:
                raise
            return {}
        return fields.mapping(shown.body.get("registered_model"), "model")

    def _tidy(self, name: str, checkpoint: Promoted) -> None:
        """Remove the registered model made for this very checkpoint, now or before a crash, if it has no version."""
        tags = [fields.mapping(each, "tag") for each in fields.items(self._model(name).get("tags"), "tags")]
        ours = any((each.get("key"), each.get("value")) == (KEY_TAG, _key(checkpoint)) for each in tags)
        if ours and not self._listed(f"name = '{name}'"):
            self.http.delete("/registered-models/delete", {"name": name})

    def _held(self, name: str, checkpoint: Promoted) -> int:
        """Return the version that was made of this checkpoint before; 0 without one. A tag alone may be anybody's."""
        versions = self._listed(f"name = '{name}' and tags.`{KEY_TAG}` = '{_key(checkpoint)}'")
        own = [_number(each.get("version")) for each in versions if each.get("run_id") == checkpoint.run_id]
        return min(own, default=0)

    def _listed(self, wanted: str) -> list[Mapping[str, object]]:
        asked = {"filter": wanted, "max_results": "100"}
        listed = fields.items(self.http.get("/model-versions/search", asked).body.get("model_versions"), "versions")
        return [fields.mapping(each, "version") for each in listed]

    def _made(self, name: str, checkpoint: Promoted) -> int:
        refusal = "the run has no logged model for the step"
        for source in self._sources(checkpoint):
            try:
                return self._version(name, source, checkpoint)
            except Rejected as error:
                if _REFUSED_SOURCE not in str(error):
                    raise
                refusal = str(error)
        copying = "" if self.copier is not None else "; the site lets no checkpoint be copied in (promotion.copy_mb)"
        raise Rejected(f"MLflow takes the checkpoint from none of its places{copying}: {refusal}")

    def _sources(self, checkpoint: Promoted) -> Iterator[Source]:
        if is_logged(checkpoint.path):
            yield Source(checkpoint.path, checkpoint.path.removeprefix(MODELS))
            return
        yield from self._logged(checkpoint)
        yield Source(checkpoint.path)
        if self.copier is not None:
            run = fields.mapping(self.http.get("/runs/get", {"run_id": checkpoint.run_id}).body.get("run"), "run")
            info = fields.mapping(run.get("info"), "run info")
            yield Source(self.copier.copied(checkpoint, fields.text(info.get("artifact_uri"), "artifact address")))

    def _logged(self, checkpoint: Promoted) -> Iterator[Source]:
        """Yield the run's own logged model of this step, if one is ready and has files: MLflow takes an empty one."""
        try:
            found = RunModels(self.http).find(ModelQuery(checkpoint.run_id, checkpoint.step))
        except (CheckpointMissing, CheckpointIncomplete):
            return
        yield Source(found.uri, found.uri.removeprefix(MODELS))

    def _version(self, name: str, source: Source, checkpoint: Promoted) -> int:
        """Return the new version; its registered model is made where the answer may be that there is none."""
        try:
            return self._new_version(name, source, checkpoint)
        except Rejected as error:
            if str(error) != UNKNOWN_RUN and NO_PERMISSION not in str(error):
                raise
            if self._model(name):
                raise
        try:
            tags = [{"key": KEY_TAG, "value": _key(checkpoint)}]
            self.http.post("/registered-models/create", {"name": name, "tags": tags})
        except Rejected as error:
            if "RESOURCE_ALREADY_EXISTS" not in str(error):
                raise
        return self._new_version(name, source, checkpoint)

    def _new_version(self, name: str, source: Source, checkpoint: Promoted) -> int:
        tags = {KEY_TAG: _key(checkpoint), **checkpoint.tags}
        asked: dict[str, object] = {
            "name": name,
            "source": source.uri,
            "run_id": checkpoint.run_id,
            "tags": [{"key": key, "value": fit(value)} for key, value in tags.items()],
        }
        answer = self.http.post(
            "/model-versions/create", asked | ({"model_id": source.model_id} if source.model_id else {})
        )
        return _number(fields.mapping(answer.body.get("model_version"), "model version").get("version"))


def _key(checkpoint: Promoted) -> str:
    """Return what names the checkpoint in a filter: an intent's name may hold a quote of the cluster's."""
    return hashlib.sha256(checkpoint.intent_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _number(value: object) -> int:
    """Return a version's number; MLflow writes it as text."""
    return fields.int64(value, "version")
