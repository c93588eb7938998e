"""A real MLflow server with its own basic-auth: what it checks, and what it does not."""

import base64
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow.gate import ServerGate
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.problems import Forbidden, LockedOut
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.core.binding import RunFacts, Trust, proof_of
from evalstopd.core.model import Job, Phase
from evalstopd.errors import Rejected
from evalstopd.ports import RunQuery, RunReading
from tests.adapters.mlflow.servers import PASSWORD
from tests.adapters.mlflow.tracker import FixedClock

pytestmark = [pytest.mark.mlflow, pytest.mark.xdist_group("ladder basic-auth")]


@pytest.fixture
def settings(guarded: MlflowServer) -> Server:
    return Server(guarded.uri, timeout_s=30, username="admin", password=PASSWORD)


@pytest.fixture
def http(settings: Server) -> Iterator[Http]:
    http = Http(settings)
    yield http
    http.close()


def call(
    server: MlflowServer, user: str, path: str, body: Mapping[str, object], version: str = "2.0", method: str = "POST"
) -> Any:
    login = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
    address = f"{server.uri}/api/{version}/mlflow{path}"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_its_door_is_seen_to_be_closed(http: Http, settings: Server):
    gate = ServerGate(http, settings)
    assert not gate.admits_strangers()
    gate.close()


def test_a_user_may_call_himself_another_so_that_a_tag_proves_nothing_there(guarded: MlflowServer, http: Http):
    """Why `binding.tags` is a statement of its own: basic-auth checks who writes, not whom a run says it is of."""
    call(guarded, "admin", "/users/create", {"username": "mallory", "password": PASSWORD})
    experiment = call(guarded, "mallory", "/experiments/create", {"name": "mallory's"})["experiment_id"]
    tags = [{"key": "slurm.job_id", "value": "7"}, {"key": "slurm.cluster", "value": "c"}]
    forged = {"experiment_id": experiment, "user_id": "alice", "start_time": 100_000, "tags": tags}
    call(guarded, "mallory", "/runs/create", forged)
    (found,) = MlflowSource(http, FixedClock()).naming("c", [7]).values()
    alices = Job("c", "7", 7, 1001, "alice", Phase.RUNNING, "RUNNING", 90, 100, 0, 8)

    assert isinstance(found, tuple)
    assert [run.user for run in found] == ["alice"]
    assert [proof_of(run, alices, Trust(tags=True)) for run in found] == ["tag"]
    assert [proof_of(run, alices, Trust()) for run in found if isinstance(run, RunFacts)] == [None]


@pytest.mark.parametrize("ways", [Ways(), Ways(False, False, True), Ways(False, False, False)], ids=str)
def test_every_way_of_reading_logs_in_and_one_closed_run_costs_no_other(guarded: MlflowServer, ways: Ways):
    """A search shows nothing of what we may not see, and a bulk answer is refused whole for one such run."""
    call(guarded, "admin", "/users/create", {"username": f"reader{id(ways)}", "password": PASSWORD})
    open_to_all, closed = (_run_with_points(guarded) for _ in range(2))
    _close(guarded, closed, f"reader{id(ways)}")
    http = Http(Server(guarded.uri, timeout_s=30, username=f"reader{id(ways)}", password=PASSWORD))
    source = MlflowSource(http, FixedClock(), None, None, ways)
    for _ in range(2):
        found = source.read([RunQuery(run_id, "m") for run_id in (open_to_all, closed)])
        assert [len(each.points) for each in found.values() if isinstance(each, RunReading)] == [3]
        assert [query.run_id for query, each in found.items() if isinstance(each, Rejected)] == [closed]
    http.close()


def test_a_password_that_was_changed_is_trouble_of_the_server_and_over_once_it_is_put_back(guarded: MlflowServer):
    call(guarded, "admin", "/users/create", {"username": "changed", "password": PASSWORD})
    queries = [RunQuery(_run_with_points(guarded), "m") for _ in range(5)]
    http = Http(Server(guarded.uri, timeout_s=30, username="changed", password=PASSWORD))
    source = MlflowSource(http, FixedClock())
    assert _kinds(source, queries) == {RunReading}
    _set_password(guarded, "changed", f"{PASSWORD} of tomorrow")
    answers = source.read(queries).values()
    assert not any(isinstance(each, RunReading | Rejected) for each in answers)
    assert any("(HTTP 401): look at mlflow.username and mlflow.password" in str(each) for each in answers)
    _set_password(guarded, "changed", PASSWORD)
    assert _kinds(source, queries) == {RunReading}
    http.close()


def test_rights_that_are_all_gone_are_trouble_of_the_server_and_those_of_one_run_are_not(guarded: MlflowServer):
    call(guarded, "admin", "/users/create", {"username": "fallen", "password": PASSWORD})
    runs = [_run_with_points(guarded) for _ in range(3)]
    http = Http(Server(guarded.uri, timeout_s=30, username="fallen", password=PASSWORD))
    source = MlflowSource(http, FixedClock())
    assert _kinds(source, [RunQuery(each, "m") for each in runs]) == {RunReading}
    _close(guarded, runs[0], "fallen")
    assert _kinds(source, [RunQuery(runs[0], "m")]) == {Forbidden}
    for each in runs[1:]:
        _close(guarded, each, "fallen")
    assert _kinds(source, [RunQuery(each, "m") for each in runs]) == {LockedOut}
    assert _kinds(source, [RunQuery(runs[0], "m")]) == {LockedOut}
    http.close()


def _kinds(source: MlflowSource, queries: Sequence[RunQuery]) -> set[type]:
    return {type(each) for each in source.read(queries).values()}


def _set_password(server: MlflowServer, user: str, password: str) -> None:
    call(server, "admin", "/users/update-password", {"username": user, "password": password}, method="PATCH")


def _run_with_points(server: MlflowServer) -> str:
    name = f"experiment {time.monotonic_ns()}"
    experiment = call(server, "admin", "/experiments/create", {"name": name})["experiment_id"]
    run = call(server, "admin", "/runs/create", {"experiment_id": experiment, "start_time": 1})["run"]["info"]
    points = [{"key": "m", "step": step, "value": 0.5, "timestamp": step} for step in range(3)]
    call(server, "admin", "/runs/log-batch", {"run_id": run["run_id"], "metrics": points})
    return str(run["run_id"])


def _close(server: MlflowServer, run_id: str, user: str) -> None:
    """Take a user's right to see a run."""
    http = Http(Server(server.uri, timeout_s=30, username="admin", password=PASSWORD))
    body = http.get("/runs/get", {"run_id": run_id}).body
    http.close()
    info = body["run"]["info"]  # type: ignore[index]
    denied = {
        "username": user,
        "resource_type": "experiment",
        "resource_id": info["experiment_id"],
        "permission": "DENY",
    }
    call(server, "admin", "/users/permissions/grant", denied, version="3.0")
