"""Every way of reading against real servers: on SQLite, on PostgreSQL, and behind a proxy that breaks answers."""

import math
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from demo.rig.mlflow_server import MlflowServer
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from evalstopd.adapters.mlflow.database import DatabaseRoute
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.problems import NotAsked, Unreachable
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.errors import Misconfigured, Unavailable
from evalstopd.ports import RunQuery, RunReading
from evalstopd.store.tracker import TrackerDatabase
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.faulty_proxy import passed_on
from tests.adapters.mlflow.servers import PASSWORD
from tests.adapters.mlflow.standin import Asked, Reply, Standin, raw
from tests.adapters.mlflow.test_datasets import RealWorld
from tests.adapters.mlflow.tracker import FixedClock, Tracker
from tests.contracts import datasets_contract as datasets
from tests.contracts.metrics_contract import METRIC, MetricsContract
from tests.installed import need_mlflow
from tests.store import postgres
from tests.warm_mlflow import Warm, WarmMlflow

pytestmark = pytest.mark.mlflow

BULK = "/ajax-api/2.0/mlflow/metrics/get-history-bulk"
INTERVAL = "/api/2.0/mlflow/metrics/get-history-bulk-interval"
WAYS = {
    "bulk history": Ways(bulk_interval=False),
    "bulk interval": Ways(bulk_history=False),
    "run by run": Ways(search=False, bulk_history=False, bulk_interval=False),
}
WORKSPACE = "team-a"


class OnPostgresql(Warm):
    """The same server with its runs in PostgreSQL."""

    def __init__(self, warm: WarmMlflow, directory: Path, socket: str) -> None:
        super().__init__(warm, directory)
        self.store = f"postgresql+psycopg://tests@/postgres?host={socket}"

    def _command(self) -> list[str]:
        command = super()._command()
        command[command.index("--backend-store-uri") + 1] = self.store
        return command


class WithWorkspaces(MlflowServer):
    """The same server with workspaces; never a fork: which routes there are is decided where MLflow is loaded."""

    def _command(self) -> list[str]:
        return [*super()._command(), "--enable-workspaces"]


@pytest.fixture(scope="session")
def postgresql_server(loaded_mlflow: WarmMlflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with ExitStack() as stack:
        try:
            socket = stack.enter_context(postgres.server())
        except postgres.NotHere as reason:
            pytest.skip(f"PostgreSQL: {reason}")
        yield stack.enter_context(OnPostgresql(loaded_mlflow, tmp_path_factory.mktemp("mlflow-pg"), socket))


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server with workspaces, where runs of another one are not there."""
    need_mlflow((3, 10), "has no workspaces")
    with WithWorkspaces(sys.executable, tmp_path_factory.mktemp("divided")) as server:
        made = httpx.post(f"{server.uri}/api/3.0/mlflow/workspaces", json={"name": WORKSPACE}, timeout=60)
        made.raise_for_status()
        yield server


@contextmanager
def faulty(uri: str) -> Iterator[Standin]:
    """A proxy that breaks every other bulk answer, each in another way; it hangs only once, for that is slow."""
    faults = ["500", "half", "half a list", "hang"] + ["500", "half"] * 5_000
    count = 0

    def script(asked: Asked) -> Reply:
        nonlocal count
        if asked.path not in (BULK, INTERVAL):
            return passed_on(uri, asked)
        count += 1
        return FAULTS[faults.pop(0)] if count % 2 else passed_on(uri, asked)

    with Standin(script) as proxy:
        yield proxy


@dataclass(frozen=True)
class Place:
    """A server, how the daemon comes to it, and its database."""

    uri: str
    server: Server
    database: str


def near(server: str) -> pytest.MarkDecorator:
    """Mark what one worker should do, so that each server is started once."""
    return pytest.mark.xdist_group(f"ladder {server}")


PLACES = ("sqlite", "postgresql", "basic-auth", "workspace", "faulty proxy")
SHARED = {"faulty proxy": "sqlite"}


@pytest.fixture(params=[pytest.param(place, marks=near(SHARED.get(place, place))) for place in PLACES])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    match request.param:
        case "postgresql":
            of = request.getfixturevalue("postgresql_server")
            yield Place(of.uri, Server(of.uri), of.store)
        case "basic-auth":
            of = request.getfixturevalue("guarded")
            server = Server(of.uri, username="admin", password=PASSWORD)
            yield Place(of.uri, server, f"sqlite:///{of.database}")
        case "workspace":
            of = request.getfixturevalue("divided")
            yield Place(of.uri, Server(of.uri, workspace=WORKSPACE), f"sqlite:///{of.database}")
        case "faulty proxy":
            of = request.getfixturevalue("mlflow_server")
            with faulty(of.uri) as proxy:
                yield Place(of.uri, Server(proxy.uri), f"sqlite:///{of.database}")
        case _:
            of = request.getfixturevalue("mlflow_server")
            yield Place(of.uri, Server(of.uri), f"sqlite:///{of.database}")


@contextmanager
def ways_of(way: str, database: str) -> Iterator[Ways]:
    """Yield the one way of reading, with the server's database where that is it."""
    if way != "database":
        yield WAYS[way]
        return
    tables = TrackerDatabase(database, 30.0)
    yield replace(WAYS["run by run"], search=True, database=DatabaseRoute(tables))
    tables.close()


@pytest.fixture(
    params=[
        pytest.param(f"{name}_server", marks=near(of), id=of)
        for name, of in (("mlflow", "sqlite"), ("postgresql", "postgresql"))
    ]
)
def uri(request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue(request.param)
    assert isinstance(server, MlflowServer)
    return server.uri


@pytest.fixture(params=[*WAYS, "database"])
def tracker(place: Place, request: pytest.FixtureRequest) -> Iterator[Tracker]:
    with ways_of(request.param, place.database) as ways:
        tracker = Tracker(place.uri, ways=ways, server=place.server)
        yield tracker
        tracker.http.close()


class TestEveryWayKeepsTheContract(MetricsContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


@pytest.mark.parametrize("workspace", ["no-such", "No Such"])
def test_a_workspace_that_is_not_there_is_said_and_no_run_is_taken_for_unknown(divided: MlflowServer, workspace: str):
    """MLflow answers for each run as if that were not there; one question a pass is enough to know better."""
    _no_workspace(divided.uri, workspace, "name one that is there in mlflow.workspace")


def test_a_server_without_workspaces_says_what_to_leave_empty(mlflow_server: MlflowServer):
    """It answers HTTP 500."""
    need_mlflow((3, 10), "does not know the word")
    _no_workspace(mlflow_server.uri, "team-a", "this server has no workspaces, so leave mlflow.workspace")


def _no_workspace(uri: str, workspace: str, words: str) -> None:
    http = Http(Server(uri, timeout_s=30, workspace=workspace))
    source = MlflowSource(http, FixedClock())
    answers = source.read([RunQuery(f"{number:032}", "m") for number in range(9)])
    assert all(isinstance(each, Unreachable | NotAsked) and words in str(each) for each in answers.values())
    assert len(answers) == 9
    with pytest.raises(Unavailable, match=words):
        source.ping()
    http.close()


def read_by(uri: str, ways: Ways | None, queries: list[RunQuery]) -> dict[RunQuery, str]:
    """Return the readings as text, in which a NaN equals itself."""
    http = Http(Server(uri, timeout_s=30))
    found = MlflowSource(http, FixedClock(), None, None, ways).read(queries)
    http.close()
    return {query: repr(each) for query, each in found.items()}


def odd_runs(tracker: Tracker) -> list[RunQuery]:
    """Make runs with all that a history may have; return what is asked of them."""
    odd, plain, bare = (tracker.make_run({"note": "ü"}, {"output_dir": "out"}) for _ in range(3))
    tracker.log(odd, METRIC, [(20, 0.5, 5), (10, 0.25, 6), (10, 0.25, 6), (20, math.nan, 7), (20, -0.5, 7), (-3, 1, 9)])
    tracker.log(odd, METRIC, [(30, math.inf, 8), (31, -math.inf, 8), (2**40, 1e-300, 8)])
    tracker.log(odd, f"{METRIC}_stderr", [(20, 0.1, 5), (10, 0.2, 6)])
    tracker.log(odd, "train/reward", [(1, 7.0, 1)])
    tracker.log(plain, METRIC, [(step, step / 7, step) for step in range(60)])
    tracker.log(plain, METRIC.upper(), [(1, 0.5, 1)])
    return [RunQuery(each, METRIC, "train/reward") for each in (odd, plain, bare, "0" * 32)]


def test_datasets_are_told_apart_on_every_server(place: Place):
    """Each value comes back from the history and from the model as the very same number."""
    world = RealWorld(Tracker(place.uri, server=place.server))
    run_id = world.make_run()
    values = [1 / 3, 0.1 + 0.2, 1e-300, -math.pi, 123456789.123456789]
    for step, value in enumerate(values):
        model_id = world.make_model(run_id)
        world.log_of(run_id, datasets.METRIC, (step, value, 10 * step), datasets.CLEAN, model_id)
        world.log_of(run_id, datasets.METRIC, (step, value / 7, 10 * step + 1), datasets.NOISY, model_id)
    for asked, divisor in (("clean", 1), ("noisy", 7)):
        assert [point.value for point in datasets.read(world, run_id, asked).points] == [
            each / divisor for each in values
        ]
    world.tracker.http.close()


def test_the_database_gives_the_same_readings_and_its_point_count_is_no_call(place: Place):
    """What only the tables show (a NaN's own column, infinities as the largest double) is read alike."""
    tracker = Tracker(place.uri, server=place.server)
    queries = odd_runs(tracker)
    expected = {query: repr(each) for query, each in tracker.source.read(queries).items()}
    with ways_of("database", place.database) as ways:
        found = MlflowSource(tracker.http, FixedClock(), None, None, ways).read(queries)
    tracker.http.close()
    assert {query: repr(each) for query, each in found.items()} == expected


@pytest.mark.parametrize("kind", ["unknown", "gone"])
def test_a_database_of_another_layout_is_left_and_said_once(
    mlflow_server: MlflowServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
):
    tracker = Tracker(mlflow_server.uri)
    queries = odd_runs(tracker)
    expected = {query: repr(each) for query, each in tracker.source.read(queries).items()}
    other = tmp_path / "other.db"
    if kind == "unknown":
        with closing(sqlite3.connect(other)) as made, made:
            made.execute("CREATE TABLE alembic_version (version_num TEXT)")
            made.execute("INSERT INTO alembic_version VALUES ('0123456789ab')")
    tables = TrackerDatabase(f"sqlite:///{other}", 5.0)
    source = MlflowSource(tracker.http, FixedClock(), None, None, Ways(database=DatabaseRoute(tables)))
    for _ in range(3):
        assert {query: repr(each) for query, each in source.read(queries).items()} == expected
    tables.close()
    tracker.http.close()
    said = [record.message for record in caplog.records if "read from the server instead" in record.message]
    assert len(said) == 1
    assert ("0123456789ab" in said[0]) == (kind == "unknown")


def test_nothing_can_be_written_by_the_databases_own_address(place: Place):
    tables = TrackerDatabase(place.database, 5.0)
    with tables._engine.connect() as connection, pytest.raises(DBAPIError, match=r"read-only|readonly"):
        connection.execute(text("DELETE FROM metrics"))
    tables.close()


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://u:secret@host/x", "sqlite://"])
def test_an_address_that_is_none_of_a_known_database_is_refused_without_being_shown(url: str):
    with pytest.raises(Misconfigured) as refused:
        TrackerDatabase(url, 5.0)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_readings(uri: str, way: str):
    tracker = Tracker(uri)
    queries = odd_runs(tracker)
    tracker.http.close()
    assert read_by(uri, WAYS[way], queries) == read_by(uri, WAYS["run by run"], queries)


def test_a_run_with_more_points_than_a_bulk_answer_holds_hides_nobody(mlflow_server: MlflowServer):
    """The real server cuts at 25,000 rows, and the run that comes last by its id gets nothing."""
    tracker = Tracker(mlflow_server.uri)
    runs = [tracker.make_run({}, {}) for _ in range(5)]
    for run_id in runs:
        tracker.log(run_id, METRIC, [(step, 0.5, step) for step in range(26_000 if run_id == min(runs) else 10)])
    for ways in (None, WAYS["bulk interval"]):
        http = Http(Server(mlflow_server.uri, timeout_s=60))
        source = MlflowSource(http, FixedClock(), None, None, ways)
        for _ in range(2):
            found = source.read([RunQuery(run_id, METRIC) for run_id in runs])
            sizes = {query.run_id: len(each.points) for query, each in found.items() if isinstance(each, RunReading)}
            assert sizes == {run_id: 26_000 if run_id == min(runs) else 10 for run_id in runs}
        http.close()
    tracker.http.close()


FAULTS = {
    "429": raw(b"", 429),
    "500": raw(b"", 500),
    "503": raw(b"", 503),
    "hang": standin.hang,
    "half": standin.half,
    "half a list": raw(b'{"metrics": [{"key": "m", "value": 0.5'),
    "slow": standin.slow_body,
}
BUSY = {"429", "503"}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_bulk_answers_costs_time_and_no_point(mlflow_server: MlflowServer, fault: str):
    """A server that asks for patience is left alone; once it is well again everything is there."""
    tracker = Tracker(mlflow_server.uri)
    queries = odd_runs(tracker)
    tracker.http.close()
    expected = read_by(mlflow_server.uri, WAYS["run by run"], queries)
    broken = {BULK, INTERVAL}

    def script(asked: Asked) -> Reply:
        return FAULTS[fault] if asked.path in broken else passed_on(mlflow_server.uri, asked)

    with Standin(script) as proxy:
        http = Http(Server(proxy.uri, timeout_s=2))
        source = MlflowSource(http, FixedClock())
        found = source.read(queries)
        if fault in BUSY:
            assert all(isinstance(each, Unavailable) for query, each in found.items() if query.run_id != "0" * 32)
        else:
            assert {query: repr(each) for query, each in found.items()} == expected
        broken.clear()
        assert {query: repr(each) for query, each in source.read(queries).items()} == expected
        http.close()


def test_answers_broken_by_chance_are_never_half_believed(mlflow_server: MlflowServer):
    """Every third answer is another fault: what is read is whole, what is not is said, and in the end all is read."""
    tracker = Tracker(mlflow_server.uri)
    queries = [RunQuery(each.run_id, METRIC) for each in odd_runs(tracker)]
    tracker.http.close()
    expected = read_by(mlflow_server.uri, WAYS["run by run"], queries)
    faults = [FAULTS[name] for name in ("500", "half", "429", "half a list", "503")]
    count = 0

    def script(asked: Asked) -> Reply:
        nonlocal count
        count += 1
        return faults[count // 3 % len(faults)] if count % 3 == 0 else passed_on(mlflow_server.uri, asked)

    seen: set[RunQuery] = set()
    with Standin(script) as proxy:
        http = Http(Server(proxy.uri, timeout_s=10))
        source = MlflowSource(http, FixedClock())
        for _ in range(30):
            for query, each in source.read(queries).items():
                if not isinstance(each, Unavailable):
                    assert repr(each) == expected[query]
                    seen.add(query)
        http.close()
    assert seen == set(queries)
