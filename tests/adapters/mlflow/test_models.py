"""Logged models on real servers: the contract, and what MLflow's own client makes of `log_model(..., step=)`."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.models import RunModels
from evalstopd.adapters.mlflow.runs import facts
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import CheckpointMissing, Rejected
from evalstopd.ports import ModelQuery
from tests.adapters.mlflow.servers import call, upload
from tests.contracts.models_contract import METRIC, ModelsContract

pytestmark = [pytest.mark.mlflow, pytest.mark.xdist_group("proxied")]


class World:
    """Runs with logged models on a real server."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.http = Http(Server(uri, timeout_s=60))
        self.models = RunModels(self.http)
        self.locations: dict[str, str] = {}

    def call(self, method: str, path: str, **body: object) -> Any:
        return call(self.uri, method, path, body)

    def make_run(self) -> str:
        return str(self.call("POST", "/runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"])

    def log_model(self, run_id: str, step: int, name: str = "model", *, ready: bool = True) -> str:
        made = self.call("POST", "/logged-models", experiment_id="0", name=name, source_run_id=run_id)
        info = made["model"]["info"]
        model_id = str(info["model_id"])
        self.locations[model_id] = info["artifact_uri"]
        self.call("POST", "/runs/outputs", run_id=run_id, models=[{"model_id": model_id, "step": step}])
        status = "LOGGED_MODEL_READY" if ready else "LOGGED_MODEL_PENDING"
        self.call("PATCH", f"/logged-models/{model_id}", model_id=model_id, status=status)
        return model_id

    def score(self, run_id: str, model_id: str, step: int, value: float) -> None:
        self.call(
            "POST",
            "/runs/log-metric",
            run_id=run_id,
            key=METRIC,
            value=value,
            timestamp=1,
            step=step,
            model_id=model_id,
        )

    def upload(self, model_id: str, files: Mapping[str, int]) -> None:
        upload(self.uri, self.locations[model_id], files)

    def delete(self, model_id: str) -> None:
        self.call("DELETE", f"/logged-models/{model_id}", model_id=model_id)


@pytest.fixture(params=["mlflow_server", "proxied"], ids=["artifacts on disk", "artifacts by the server"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(request.getfixturevalue(request.param).uri)
    yield world
    world.http.close()


class TestRealModels(ModelsContract):
    @pytest.fixture
    def world(self, world: World) -> World:  # type: ignore[misc]
        return world


def test_a_run_says_how_many_logged_models_it_has(world: World):
    run_id = world.make_run()
    assert facts(world.http, run_id).models == 0
    world.log_model(run_id, 10)
    world.log_model(run_id, 20, ready=False)
    assert facts(world.http, run_id).models == 2


def test_a_flood_of_folders_or_files_is_refused(world: World):
    run_id = world.make_run()
    world.upload(world.log_model(run_id, 10), {f"folder{number}/file": 1 for number in range(60)})
    with pytest.raises(Rejected, match="more than"):
        world.models.find(ModelQuery(run_id, 10))


@pytest.mark.parametrize("uri", ["models:/", "models:/../../runs/get", "models:/a b", "models:/é", "/etc/passwd"])
def test_an_address_that_is_no_models_is_refused_or_missing(world: World, uri: str):
    with pytest.raises((Rejected, CheckpointMissing)):
        world.models.verify(world.make_run(), uri)


CLIENT = """
import sys, mlflow
class Model(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input
mlflow.set_tracking_uri(sys.argv[1])
# Told what a model needs, MLflow does not load it in a process of its own to find out.
logged = {"python_model": Model(), "pip_requirements": ["mlflow"]}
with mlflow.start_run() as run:
    for step, score in ((10, 0.5), (20, 0.75)):
        mlflow.pyfunc.log_model(name="model", step=step, **logged)
        mlflow.log_metric("score", score, step=step)
    for step in (30, 40):
        mlflow.pyfunc.log_model(name=f"checkpoint-{step}", **logged)
    print("RUN", run.info.run_id)
"""


def test_what_mlflows_own_client_logs_by_step_and_what_huggingfaces_callback_does_is_found(world: World):
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, world.uri], env=environment, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    run_id = done.stdout.partition("RUN ")[2].split()[0]
    found = {step: world.models.find(ModelQuery(run_id, step)) for step in (10, 20, 30, 40)}

    assert len({each.uri for each in found.values()}) == 4
    assert all(each.files >= 2 and each.size > 100 for each in found.values())
    listed = {each.model_id: each for each in world.models.models(run_id)}
    assert listed[found[20].uri.removeprefix("models:/")].step == 20
    with pytest.raises(CheckpointMissing):
        world.models.find(ModelQuery(run_id, 50))
