"""Model versions on a real server: made once whatever breaks, from whichever place MLflow takes a checkpoint."""

import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self
from urllib.parse import quote

import httpx
import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow.copying import Copier
from evalstopd.adapters.mlflow.http import Answer, Http, Params
from evalstopd.adapters.mlflow.registrar import Registrar
from evalstopd.adapters.mlflow.registration import KEY_TAG, Registration
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import Rejected
from evalstopd.ports import Promoted, Registered
from tests.adapters.mlflow.servers import upload
from tests.contracts.registry_contract import KEY, RegistryContract, promoted
from tests.installed import need
from tests.warm_mlflow import Warm, WarmMlflow

pytestmark = [pytest.mark.mlflow, pytest.mark.xdist_group("proxied")]
TEMPLATE = "evalstop-{cluster}-{job}"
NAME = "evalstop-c-7"
USER, PASSWORD = "evalstopd-user", "a-long-password-of-tests"


class World:
    """A registry on a real server, emptied of the contract's models."""

    def __init__(self, uri: str, server: Server | None = None) -> None:
        self.uri = uri
        self.server = server or Server(uri, timeout_s=60)
        login = (self.server.username, self.server.password) if self.server.username else None
        self.api = httpx.Client(base_url=f"{uri}/api/2.0/mlflow", timeout=60, trust_env=False, auth=login)
        self.http = Http(self.server)
        self.experiment = "0"
        if login is not None:
            self.experiment = str(self.post("/experiments/create", name=secrets.token_hex(8))["experiment_id"])
        for name in (NAME, "evalstop-c-8_1"):
            self.api.request("DELETE", "/registered-models/delete", json={"name": name})
        self.restart()

    def close(self) -> None:
        self.api.close()
        self.http.close()

    def restart(self) -> None:
        self.registrar = Registrar(Registration(self.http, TEMPLATE).register)

    def post(self, path: str, **body: object) -> dict[str, dict[str, dict[str, str]]]:
        answer = self.api.post(path, json=body)
        answer.raise_for_status()
        found: dict[str, dict[str, dict[str, str]]] = answer.json()
        return found

    def make_run(self, *steps: int) -> str:
        run_id = self.post("/runs/create", experiment_id=self.experiment, start_time=1)["run"]["info"]["run_id"]
        for step in steps or (20, 30):
            self.log_model(run_id, step)
        return run_id

    def log_model(
        self, run_id: str, step: int, name: str = "model", status: str = "LOGGED_MODEL_READY", size: int = 9
    ) -> str:
        made = self.post("/logged-models", experiment_id=self.experiment, name=name, source_run_id=run_id)
        model_id = made["model"]["info"]["model_id"]
        upload(self.uri, made["model"]["info"]["artifact_uri"], {"MLmodel": size} if size else {})
        self.api.patch(f"/logged-models/{model_id}", json={"model_id": model_id, "status": status}).raise_for_status()
        self.post("/runs/outputs", run_id=run_id, models=[{"model_id": model_id, "step": step}])
        return model_id

    def ask(self, checkpoints: Sequence[Promoted]) -> dict[str, Registered]:
        self.registrar.register(checkpoints)
        found: dict[str, Registered] = {}
        end = time.monotonic() + 120
        while len(found) < len(checkpoints):
            assert time.monotonic() < end
            time.sleep(0.05)
            found |= {each.intent_id: each for each in self.registrar.registered()}
        return found

    def listed(self, name: str) -> list[dict[str, str]]:
        answer = self.api.get("/model-versions/search", params={"filter": f"name = '{name}'"}).json()
        return sorted(answer.get("model_versions", []), key=lambda each: int(each["version"]))

    def versions(self, name: str) -> list[str]:
        return [each["run_id"] for each in self.listed(name)]

    def has_model(self, name: str) -> bool:
        return self.api.get("/registered-models/get", params={"name": name}).is_success

    def alias(self, name: str) -> int:
        model = self.api.get("/registered-models/get", params={"name": name}).json()["registered_model"]
        return next(int(each["version"]) for each in model["aliases"] if each["alias"] == "evalstop-best")


@pytest.fixture
def world(mlflow_server: MlflowServer) -> Iterator[World]:
    world = World(mlflow_server.uri)
    yield world
    world.close()


class TestRealRegistry(RegistryContract):
    @pytest.fixture
    def world(self, world: World) -> World:  # type: ignore[misc]
        return world


class Killed(BaseException):
    """The process is gone."""


class Breaking(Http):
    """A client whose process ends before or after its n-th request; closed with the block that it serves."""

    def __init__(self, server: Server, at: int, *, after: bool) -> None:
        super().__init__(server)
        self._at, self._after, self.count = at, after, 0
        self.writes: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _around(self, *, writes: bool = True) -> Iterator[None]:
        self.count += 1
        self.writes += [self.count] if writes else []
        if self.count == self._at and not self._after:
            raise Killed
        try:
            yield
        finally:
            if self.count == self._at:
                raise Killed

    def get(self, path: str, params: Params) -> Answer:
        with self._around(writes=False):
            return super().get(path, params)

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        with self._around():
            return super().post(path, body)

    def put(self, path: str, parts: Iterable[bytes], size: int) -> None:
        with self._around():
            super().put(path, parts, size)

    def delete(self, path: str, body: Mapping[str, object]) -> Answer:
        with self._around():
            return super().delete(path, body)


def test_killed_at_any_request_there_is_one_version_and_the_alias(world: World, mlflow_server: MlflowServer):
    server = Server(mlflow_server.uri, timeout_s=60)
    with Breaking(server, 0, after=False) as counting:
        Registration(counting, TEMPLATE).register(promoted(world.make_run()))
    for at in range(1, counting.count + 1):
        for after in (False, True):
            world.api.request("DELETE", "/registered-models/delete", json={"name": NAME})
            one = promoted(world.make_run())
            with Breaking(server, at, after=after) as broken, pytest.raises(Killed):
                Registration(broken, TEMPLATE).register(one)
            assert Registration(world.http, TEMPLATE).register(one) == f"models:/{NAME}/1"
            assert (world.versions(NAME), world.alias(NAME)) == ([one.run_id], 1)


def test_a_checkpoint_outside_the_runs_artifacts_is_refused_and_the_reason_says_what_would_help(world: World):
    run_id = world.post("/runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"]
    (answer,) = world.ask([promoted(run_id)]).values()
    assert "promotion.copy_mb" in answer.refused
    assert world.versions(NAME) == []
    assert not world.has_model(NAME)


def test_an_empty_model_of_somebody_elses_is_left_alone(world: World):
    world.post("/registered-models/create", name=NAME)
    run_id = world.post("/runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"]
    assert world.ask([promoted(run_id)]).popitem()[1].refused
    assert world.has_model(NAME)


@pytest.fixture(scope="module")
def guarded(loaded_mlflow: WarmMlflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server with rights, where a user may do with a model what he likes once he made it, and nothing before."""
    need("flask_wtf", "MLFLOW TESTS SKIPPED: basic-auth needs Flask-WTF (mlflow[auth])")
    with Warm(loaded_mlflow, tmp_path_factory.mktemp("guarded-registry"), password=PASSWORD) as server:
        admin = httpx.Client(auth=("admin", PASSWORD), timeout=60, trust_env=False)
        with admin:
            made = admin.post(
                f"{server.uri}/api/2.0/mlflow/users/create", json={"username": USER, "password": PASSWORD}
            )
            made.raise_for_status()
        yield server


@pytest.mark.slow
def test_on_a_server_with_rights_a_refused_checkpoint_leaves_no_model_wherever_it_was_killed(guarded: MlflowServer):
    server = Server(guarded.uri, timeout_s=60, username=USER, password=PASSWORD)
    world = World(guarded.uri, server)
    run_id = world.make_run(20)
    outside = replace(promoted(run_id, 99), path="/nowhere/best")
    with Breaking(server, 0, after=False) as counting, pytest.raises(Rejected, match="from none of its places"):
        Registration(counting, TEMPLATE).register(outside)
    assert not world.has_model(NAME)
    for at in counting.writes:
        with Breaking(server, at, after=True) as broken, pytest.raises(Killed):
            Registration(broken, TEMPLATE).register(outside)
        with pytest.raises(Rejected, match="from none of its places"):
            Registration(world.http, TEMPLATE).register(outside)
        assert not world.has_model(NAME)
    assert Registration(world.http, TEMPLATE).register(promoted(run_id)) == f"models:/{NAME}/1"
    assert (world.versions(NAME), world.alias(NAME)) == ([run_id], 1)
    with pytest.raises(Rejected, match="from none of its places"):
        Registration(world.http, TEMPLATE).register(outside)
    assert world.versions(NAME) == [run_id]
    world.close()


def test_a_checkpoint_within_the_runs_artifacts_is_taken_where_it_lies(world: World):
    run = world.post("/runs/create", experiment_id="0", start_time=1)["run"]["info"]
    path = f"{run['artifact_uri']}/best"
    (answer,) = world.ask([replace(promoted(run["run_id"]), path=path)]).values()
    assert answer.where == f"models:/{NAME}/1"
    assert world.listed(NAME)[0]["source"] == path


def test_only_a_ready_model_of_this_run_and_step_is_the_source(world: World):
    run_id, other = world.make_run(10), world.make_run(20)
    world.log_model(run_id, 20, status="LOGGED_MODEL_PENDING")
    assert world.ask([promoted(run_id)]).popitem()[1].refused
    strangers = world.log_model(other, 20)
    world.post("/runs/outputs", run_id=run_id, models=[{"model_id": strangers, "step": 20}])
    assert world.ask([promoted(run_id)]).popitem()[1].refused
    # As Hugging Face's callback names them, whatever step MLflow notes.
    wanted = world.log_model(run_id, 0, name="checkpoint-20")
    assert world.ask([promoted(run_id)]).popitem()[1].where == f"models:/{NAME}/1"
    assert world.listed(NAME)[0]["source"] == f"models:/{wanted}"


def test_a_logged_model_without_files_is_no_source(world: World):
    """MLflow itself takes it, and shows a version that is ready."""
    run_id = world.make_run(10)
    world.log_model(run_id, 20, size=0)
    assert world.ask([promoted(run_id)]).popitem()[1].refused
    assert world.versions(NAME) == []


def test_the_logged_model_that_was_kept_is_the_version_and_no_other(world: World):
    run_id = world.make_run(10)
    kept = world.log_model(run_id, 20)
    world.log_model(run_id, 20)
    one = replace(promoted(run_id), path=f"models:/{kept}")
    for _ in range(2):
        assert world.ask([one]).popitem()[1].where == f"models:/{NAME}/1"
        world.restart()
    (version,) = world.listed(NAME)
    assert version["source"] == f"models:/{kept}"


def test_a_strangers_version_under_our_key_is_not_taken_for_ours(world: World):
    one, strangers = promoted(world.make_run()), world.make_run()
    world.ask([one])
    key = next(tag["value"] for tag in world.listed(NAME)[0]["tags"] if tag["key"] == KEY_TAG)  # type: ignore[index]
    world.api.request("DELETE", "/model-versions/delete", json={"name": NAME, "version": "1"})
    tags = [{"key": KEY_TAG, "value": key}]
    model = world.log_model(strangers, 20)
    world.post(
        "/model-versions/create", name=NAME, source=f"models:/{model}", run_id=strangers, model_id=model, tags=tags
    )
    assert world.ask([one]).popitem()[1].where == f"models:/{NAME}/3"


def test_a_registry_that_is_down_is_asked_later_and_nothing_waits():
    http = Http(Server("http://127.0.0.1:9", timeout_s=5))
    now = [0.0]
    registrar = Registrar(Registration(http, TEMPLATE).register, lambda: now[0])
    registrar.register([promoted("0" * 32)])
    found: list[Registered] = []
    end = time.monotonic() + 60
    while not found and time.monotonic() < end:
        time.sleep(0.02)
        found += registrar.registered()
    assert "cannot connect" in found[0].later
    registrar.register([promoted("0" * 32)])
    assert registrar.waiting == 0
    now[0] = 61.0
    registrar.register([promoted("0" * 32)])
    assert registrar.waiting == 1
    http.close()


# --- copying in


@pytest.fixture
def best(tmp_path: Path) -> Path:
    best = tmp_path / "best"
    (best / "sub dir").mkdir(parents=True)
    (best / "model.safetensors").write_bytes(b"x" * 3_000_000)
    (best / "sub dir" / "state?.json").write_text("{}")
    (best / "empty").touch()
    return best


@pytest.fixture
def copies(proxied: MlflowServer) -> Iterator[World]:
    world = World(proxied.uri)
    yield world
    world.close()


def of(world: World, path: Path, uid: int | None = None) -> Promoted:
    run_id = world.post("/runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"]
    key = replace(KEY, uid=os.getuid() if uid is None else uid)
    return replace(promoted(run_id, key=key), path=str(path))


def test_a_copied_checkpoint_is_whole_before_it_is_a_version_also_when_killed_at_any_request(
    copies: World, proxied: MlflowServer, best: Path
):
    server = Server(proxied.uri, timeout_s=60)
    with Breaking(server, 0, after=False) as counting:
        Registration(counting, TEMPLATE, Copier(counting, 10_000_000)).register(of(copies, best))
    for at in range(1, counting.count + 1):
        copies.api.request("DELETE", "/registered-models/delete", json={"name": NAME})
        one = of(copies, best)
        with Breaking(server, at, after=True) as broken, pytest.raises(Killed):
            Registration(broken, TEMPLATE, Copier(broken, 10_000_000)).register(one)
        for version in copies.listed(NAME):
            assert read(proxied, version["source"], "sub dir/state?.json") == b"{}"
        again = Registration(copies.http, TEMPLATE, Copier(copies.http, 10_000_000))
        assert again.register(one) == f"models:/{NAME}/1"
        (version,) = copies.listed(NAME)
        assert read(proxied, version["source"], "model.safetensors") == b"x" * 3_000_000
        assert read(proxied, version["source"], "empty") == b""


def read(server: MlflowServer, source: str, name: str) -> bytes:
    path = f"{source.removeprefix('mlflow-artifacts:/')}/{quote(name)}"
    answer = httpx.get(f"{server.uri}/api/2.0/mlflow-artifacts/artifacts/{path}", timeout=60, trust_env=False)
    answer.raise_for_status()
    return answer.content


def a_link(best: Path) -> None:
    (best / "link").symlink_to("/etc/hostname")


def a_linked_folder(best: Path) -> None:
    (best / "folder").symlink_to("/etc")


def a_pipe(best: Path) -> None:
    os.mkfifo(best / "pipe")


def too_large(best: Path) -> None:
    with (best / "huge").open("wb") as file:
        file.truncate(20_000_000)


@pytest.mark.parametrize("trap", [a_link, a_linked_folder, a_pipe, too_large])
def test_nothing_but_the_owners_own_plain_files_is_copied(copies: World, best: Path, trap):
    trap(best)
    with pytest.raises(Rejected):
        Registration(copies.http, TEMPLATE, Copier(copies.http, 10_000_000)).register(of(copies, best))
    assert copies.versions(NAME) == []


def test_files_of_another_than_the_jobs_owner_are_not_copied(copies: World, best: Path):
    """What the daemon may read and the owner may not would else get out by a hard link."""
    with pytest.raises(Rejected, match="owner"):
        Registration(copies.http, TEMPLATE, Copier(copies.http, 10_000_000)).register(of(copies, best, os.getuid() + 1))


def test_where_the_server_keeps_no_artifacts_nothing_can_be_copied_in(world: World, best: Path):
    with pytest.raises(Rejected, match="not kept by the tracking server"):
        Registration(world.http, TEMPLATE, Copier(world.http, 10_000_000)).register(of(world, best))


def test_a_checkpoint_that_vanished_is_refused(copies: World, tmp_path: Path):
    with pytest.raises(Rejected, match="cannot be read"):
        Registration(copies.http, TEMPLATE, Copier(copies.http, 1)).register(of(copies, tmp_path / "gone"))
