"""Every way of reading against real servers: on SQLite, on PostgreSQL, and behind a proxy that breaks answers."""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.errors import Unavailable
from evalstopd.ports import RunQuery, RunReading
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.faulty_proxy import passed_on
from tests.adapters.mlflow.standin import Asked, Reply, Standin, raw
from tests.adapters.mlflow.tracker import FixedClock, Tracker
from tests.contracts.metrics_contract import METRIC, MetricsContract
from tests.store import postgres

pytestmark = pytest.mark.mlflow

BULK = "/ajax-api/2.0/mlflow/metrics/get-history-bulk"
INTERVAL = "/api/2.0/mlflow/metrics/get-history-bulk-interval"
WAYS = {
    "bulk history": Ways(bulk_interval=False),
    "bulk interval": Ways(bulk_history=False),
    "run by run": Ways(search=False, bulk_history=False, bulk_interval=False),
}


class OnPostgresql(MlflowServer):
    """The same server with its runs in PostgreSQL."""

    def __init__(self, python: str, directory: Path, socket: str) -> None:
        super().__init__(python, directory)
        self._store = f"postgresql+psycopg://tests@/postgres?host={socket}"

    def _command(self) -> list[str]:
        command = super()._command()
        command[command.index("--backend-store-uri") + 1] = self._store
        return command


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    pytest.importorskip("mlflow", reason="MLFLOW TESTS SKIPPED: mlflow is not installed")
    with ExitStack() as stack:
        try:
            socket = stack.enter_context(postgres.server())
        except postgres.NotHere as reason:
            pytest.skip(f"PostgreSQL: {reason}")
        yield stack.enter_context(OnPostgresql(sys.executable, tmp_path_factory.mktemp("mlflow-pg"), socket))


@pytest.fixture(params=["mlflow_server", "postgresql_server"], ids=["sqlite", "postgresql"])
def uri(request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue(request.param)
    assert isinstance(server, MlflowServer)
    return server.uri


@pytest.fixture(params=WAYS)
def tracker(uri: str, request: pytest.FixtureRequest) -> Iterator[Tracker]:
    tracker = Tracker(uri, ways=WAYS[request.param])
    yield tracker
    tracker.http.close()


class TestEveryWayKeepsTheContract(MetricsContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


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
