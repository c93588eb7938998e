"""A real server of MLflow 2, and its client: the same contracts, and what it does not have.

PYTHON_OF_MLFLOW2 is a Python with mlflow 2 installed (`make mlflow2` makes one).
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow.copying import Copier
from evalstopd.adapters.mlflow.database import DatabaseRoute
from evalstopd.adapters.mlflow.gate import ServerGate
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.models import RunModels
from evalstopd.adapters.mlflow.registration import Registration
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.core.mac import SiteKey
from evalstopd.errors import CheckpointMissing, EvalstopError
from evalstopd.ports import ModelQuery, Promoted, Registered, RunQuery, RunReading
from evalstopd.store.tracker import TrackerDatabase
from tests.adapters.mlflow import test_registry
from tests.adapters.mlflow.servers import Proxied
from tests.adapters.mlflow.test_plugin import BINDING, IN_JOB, JOB, KEY, START, site_packages, tags_of, train
from tests.adapters.mlflow.test_real_ladder import WAYS, odd_runs
from tests.adapters.mlflow.tracker import FixedClock, Tracker
from tests.contracts.metrics_contract import MetricsContract
from tests.contracts.registry_contract import RegistryContract
from tests.contracts.run_finder_contract import RunFinderContract
from tests.contracts.run_list_contract import RunListContract

__all__ = ["site_packages"]
pytestmark = pytest.mark.mlflow
VARIABLE = "PYTHON_OF_MLFLOW2"


@pytest.fixture(scope="module")
def python() -> str:
    python = os.environ.get(VARIABLE, "")
    if not os.access(python, os.X_OK):
        pytest.skip(f"MLFLOW 2 NOT TESTED: {VARIABLE} names no Python that has it (make mlflow2): {python!a}")
    told = subprocess.run(
        [python, "-W", "ignore", "-c", "import mlflow; print(mlflow.__version__)"], capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    if told.returncode or not told.stdout.startswith("2."):
        pytest.skip(f"MLFLOW 2 NOT TESTED: {python} has no mlflow 2: {(told.stdout + told.stderr)[-200:]}")
    print(f"MLflow {told.stdout.strip()}")
    return python


@pytest.fixture(scope="module")
def server(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """Its artifacts are kept by the server itself: so one server serves all tests."""
    with Proxied(python, tmp_path_factory.mktemp("mlflow2")) as server:
        yield server


@pytest.fixture
def tracker(server: MlflowServer) -> Iterator[Tracker]:
    tracker = Tracker(server.uri)
    yield tracker
    tracker.http.close()


class TestEveryWayKeepsTheContract(MetricsContract):
    @pytest.fixture(params=[*WAYS, "database"])
    def world(self, server: MlflowServer, request: pytest.FixtureRequest) -> Iterator[Tracker]:
        tables = TrackerDatabase(f"sqlite:///{server.database}", 30.0)
        only = replace(WAYS["run by run"], search=True, database=DatabaseRoute(tables))
        tracker = Tracker(server.uri, ways=only if request.param == "database" else WAYS[request.param])
        yield tracker
        tracker.http.close()
        tables.close()


class TestRunList(RunListContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


class TestRunFinder(RunFinderContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


def test_every_way_gives_the_same_readings_but_for_steps_below_0(server: MlflowServer, tracker: Tracker):
    """Its bulk interval begins at step 0 where nobody says otherwise."""
    queries = odd_runs(tracker)
    found = {}
    for name, ways in {**WAYS, "all": Ways()}.items():
        http = Http(Server(server.uri, timeout_s=30))
        answers = MlflowSource(http, FixedClock(), None, None, ways).read(queries)
        found[name] = {query: repr(_from_0(each)) for query, each in answers.items()}
        http.close()
    assert all(each == found["all"] for each in found.values())


def _from_0(answer: RunReading | EvalstopError) -> RunReading | EvalstopError:
    if not isinstance(answer, RunReading):
        return answer
    return replace(answer, points=tuple(each for each in answer.points if each.step >= 0))


def test_runs_with_steps_of_their_own_are_whole_by_every_way(server: MlflowServer, tracker: Tracker):
    """Its bulk interval samples the steps of all runs of a call together: 2,500, and no run has as many."""
    runs = [tracker.make_run({}, {}) for _ in range(60)]
    for number, run_id in enumerate(runs):
        tracker.log(run_id, "m", [(step * 60 + number, 0.5, step) for step in range(50)])
    for ways in WAYS.values():
        http = Http(Server(server.uri, timeout_s=30))
        answers = MlflowSource(http, FixedClock(), None, None, ways).read([RunQuery(each, "m") for each in runs])
        http.close()
        assert {len(each.points) for each in answers.values() if isinstance(each, RunReading)} == {50}
        assert len(answers) == 60


def test_bulk_history_is_the_way_that_answers_first(tracker: Tracker):
    tracker.source.read([RunQuery(tracker.make_run({}, {}), "m")])
    assert tracker.source.ping() == "its API answers; evals are read by bulk history"


def test_it_is_seen_to_be_open(server: MlflowServer, tracker: Tracker):
    gate = ServerGate(tracker.http, Server(server.uri, timeout_s=30))
    assert gate.admits_strangers()
    gate.close()


def test_it_has_no_logged_models_and_is_asked_for_none(tracker: Tracker):
    run_id = tracker.make_run({}, {})
    with pytest.raises(CheckpointMissing):
        RunModels(tracker.http).find(ModelQuery(run_id, 20))


class RegistryWorld(test_registry.World):
    """Runs whose published checkpoints lie among their artifacts: without logged models that is what MLflow takes."""

    def make_run(self, *steps: int) -> str:
        return self.post("/runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"]

    def ask(self, checkpoints: Sequence[Promoted]) -> dict[str, Registered]:
        return super().ask([replace(each, path=self._place(each.run_id)) for each in checkpoints])

    def _place(self, run_id: str) -> str:
        answer = self.api.get("/runs/get", params={"run_id": run_id}).json()
        return f"{answer['run']['info']['artifact_uri']}/best"


class TestRegistry(RegistryContract):
    @pytest.fixture
    def world(self, server: MlflowServer) -> Iterator[RegistryWorld]:
        world = RegistryWorld(server.uri)
        yield world
        world.api.close()
        world.http.close()


def test_a_checkpoint_is_copied_in_whole(server: MlflowServer, tmp_path: Path):
    (tmp_path / "best/sub dir").mkdir(parents=True)
    (tmp_path / "best/model.safetensors").write_bytes(b"x" * 3_000_000)
    (tmp_path / "best/sub dir/state?.json").write_text("{}")
    world = test_registry.World(server.uri)
    one = test_registry.of(world, tmp_path / "best")
    for _ in range(2):
        registration = Registration(world.http, test_registry.TEMPLATE, Copier(world.http, 10_000_000))
        assert registration.register(one) == f"models:/{test_registry.NAME}/1"
    (version,) = world.listed(test_registry.NAME)
    assert test_registry.read(server, version["source"], "sub dir/state?.json") == b"{}"
    world.api.close()
    world.http.close()


def test_a_checkpoint_outside_the_runs_artifacts_is_refused_and_the_reason_says_what_would_help(server: MlflowServer):
    world = test_registry.World(server.uri)
    run_id = world.post("/runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"]
    (answer,) = world.ask([test_registry.promoted(run_id)]).values()
    assert "promotion.copy_mb" in answer.refused
    assert not world.has_model(test_registry.NAME)
    world.api.close()
    world.http.close()


def test_its_client_loads_the_plugin_and_seals_new_and_resumed_runs(tracker: Tracker, site_packages: Path, python: str):
    done = train(START + BINDING, tracker.uri, site_packages, IN_JOB, python)
    run_id = _first_word(done)
    tags = tags_of(tracker, run_id)
    assert (tags["slurm.job_id"], tags["slurm.cluster"]) == ("3", "evs")
    assert SiteKey(KEY).sealed(JOB, run_id, tags["evalstop.mac"])
    assert "evalstopd" not in done.stderr

    old = tracker.make_run({"slurm.job_id": "3", "slurm.cluster": "evs", "evalstop.mac": "old"}, {})
    again = {**IN_JOB, "MLFLOW_RUN_ID": old}
    assert _first_word(train(START + BINDING, tracker.uri, site_packages, again, python)) == old
    assert SiteKey(KEY).sealed(JOB, old, tags_of(tracker, old)["evalstop.mac"])


def _first_word(done: subprocess.CompletedProcess[str]) -> str:
    """Return the run's id; after it MLflow 2 prints addresses, whatever it is told."""
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def test_several_datasets_under_one_name_are_never_told_apart_and_that_is_said(tracker: Tracker):
    run_id = tracker.make_run({}, {})
    tracker.log(run_id, "m", [(step, value, 10 * step + n) for step in range(4) for n, value in enumerate((0.5, 0.25))])
    for asked in ("", "clean"):
        query = RunQuery(run_id, "m", dataset=asked)
        answer = tracker.source.read([query])[query]
        assert isinstance(answer, RunReading)
        assert (len(answer.points), answer.dataset) == (8, "")
        assert "no logged model tells of which dataset each value is" in answer.untold
