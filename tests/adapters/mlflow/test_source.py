"""Many runs in one pass: an outage is cheap, and one run's trouble is its own."""

import time
from collections.abc import Iterator

import pytest

from evalstopd.adapters.mlflow import source as source_module
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Pace, Ways
from evalstopd.errors import EvalstopError, PastCaps, Rejected, Unavailable
from evalstopd.ports import RunQuery, RunReading
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Asked, Reply, Standin, closed_port, plain, point_json, raw, run_json
from tests.adapters.mlflow.tracker import FixedClock
from tests.fakes.world import FakeClock

# For servers that hang; a slow machine must not take a good answer for silence.
LIMIT_S = 0.5
PATIENT_S = 60.0
ALONE = Ways(search=False, bulk_history=False, bulk_interval=False)
MANY = [RunQuery(f"r{number:03}", "m") for number in range(40)]


def good(asked: Asked) -> Reply:
    if asked.path.endswith("/runs/get"):
        return plain(run_json(asked.query["run_id"]))
    return plain({"metrics": [point_json("m")]})


@pytest.fixture
def server() -> Iterator[Standin]:
    with Standin(good) as server:
        yield server


def source_of(uri: str, limit_s: float = PATIENT_S, **pace: float) -> MlflowSource:
    """Return a source that asks for each run and series by itself; test_ladder.py has the other ways."""
    http = Http(Server(uri, timeout_s=limit_s, max_bytes=2**20))
    return MlflowSource(http, FixedClock(), Caps(points=50), Pace(**pace), ALONE)  # type: ignore[arg-type]


def timed(source: MlflowSource, queries: list[RunQuery]) -> tuple[float, dict[RunQuery, RunReading | EvalstopError]]:
    began = time.monotonic()
    readings = dict(source.read(queries))
    return time.monotonic() - began, readings


def healthy(readings: dict[RunQuery, RunReading | EvalstopError]) -> set[str]:
    return {query.run_id for query, answer in readings.items() if isinstance(answer, RunReading)}


@pytest.mark.timed
@pytest.mark.parametrize("reply", [standin.hang, standin.slow_body, standin.slow_head, raw(b"", 504)])
def test_a_server_that_never_answers_costs_two_limits_whatever_the_number_of_runs(server: Standin, reply: Reply):
    server.script = lambda asked: reply
    took_s, readings = timed(source_of(server.uri, LIMIT_S), MANY)
    assert took_s < 3 * LIMIT_S
    assert all(isinstance(answer, Unavailable) for answer in readings.values())
    assert len(readings) == len(MANY)
    assert len(server.asked) <= 8


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_patience_is_left_alone(server: Standin, status: int):
    server.script = lambda asked: raw(b"", status)
    _, readings = timed(source_of(server.uri), MANY)
    assert all(isinstance(answer, Unavailable) for answer in readings.values())
    assert len(server.asked) <= 4


@pytest.mark.timed
def test_a_server_that_is_gone_is_told_in_no_time():
    took_s, readings = timed(source_of(f"http://127.0.0.1:{closed_port()}"), MANY)
    assert took_s < LIMIT_S
    assert all("Connection refused" in str(answer) for answer in readings.values())


def test_the_next_pass_tries_again(server: Standin):
    source = source_of(server.uri)
    server.script = lambda asked: raw(b"", 503)
    assert healthy(timed(source, MANY)[1]) == set()
    server.script = good
    assert len(healthy(timed(source, MANY)[1])) == len(MANY)


TROUBLES = {
    "hang": standin.hang,
    "half": standin.half,
    "html": raw(b"<html>"),
    "500": raw(b"", 500),
    "502": raw(b"", 502),
    "403": raw(b"", 403),
    "empty": plain({}),
    "large": standin.large(2**21),
    "token": plain({"metrics": [], "next_page_token": "t"}),
    "flood": plain({"metrics": [point_json("m", step) for step in range(51)]}),
    "types": plain({"run": 5, "metrics": "no"}),
}


@pytest.mark.parametrize("path", ["/runs/get", "/metrics/get-history"])
@pytest.mark.parametrize("trouble", standin.each(TROUBLES))
def test_the_trouble_of_a_few_runs_costs_no_other_run(server: Standin, trouble: str, path: str):
    """As many troubled runs as threads, and first in line."""
    troubled = {query.run_id for query in MANY[:4]}
    bad = TROUBLES[trouble]
    server.script = lambda asked: (
        bad if asked.query["run_id"] in troubled and asked.path.endswith(path) else good(asked)
    )
    readings = timed(source_of(server.uri, LIMIT_S if trouble == "hang" else PATIENT_S), MANY)[1]
    assert set(readings) == set(MANY)
    untouched = bad is TROUBLES["empty"] and path == "/metrics/get-history"
    assert healthy(readings) == {query.run_id for query in MANY} - (set() if untouched else troubled)


@pytest.mark.timed
def test_time_outs_with_answers_between_them_never_add_up(server: Standin):
    """Twice as many heavy histories as threads, first in line: the server answers about other things meanwhile."""
    heavy = {query.run_id for query in MANY[:8]}
    server.script = lambda asked: (
        standin.hang if asked.query["run_id"] in heavy and "metric_key" in asked.query else good(asked)
    )
    assert healthy(timed(source_of(server.uri, LIMIT_S), MANY)[1]) == {query.run_id for query in MANY} - heavy


@pytest.mark.timed
def test_heavy_runs_come_last_the_next_time(server: Standin):
    """However many of them there are: who floods a run cannot keep the others from being read."""
    heavy = {query.run_id for query in MANY[:10]}
    server.script = lambda asked: standin.hang if asked.query["run_id"] in heavy else good(asked)
    source = source_of(server.uri, LIMIT_S)
    timed(source, MANY)
    timed(source, MANY)
    server.asked.clear()
    assert len(healthy(timed(source, MANY)[1])) == 30
    first = [asked.query.get("run_id") for asked in server.asked[:40]]
    assert not heavy.intersection(first)


@pytest.mark.timed
def test_a_pass_ends_when_its_time_is_over(server: Standin):
    def slow(asked: Asked) -> Reply:
        return lambda line: (line.hold(0.2), good(asked)(line))[0]

    server.script = slow
    took_s, readings = timed(source_of(server.uri, LIMIT_S, seconds=0.5), MANY)
    assert took_s < 0.5 + 3 * LIMIT_S
    assert any("in all" in str(answer) for answer in readings.values())


def test_a_run_past_the_caps_is_asked_for_ever_more_rarely(server: Standin):
    """In passes half a minute apart: after one minute, two, four and eight, and then each quarter of an hour."""
    server.script = lambda asked: TROUBLES["flood"] if "metric_key" in asked.query else good(asked)
    clock = FakeClock(0.0)
    http = Http(Server(server.uri, timeout_s=PATIENT_S))
    source = MlflowSource(http, clock, Caps(points=50), None, ALONE)
    asked_at = []
    for clock.time_s in range(0, 3_600, 30):
        server.asked.clear()
        assert isinstance(source.read(MANY[:1])[MANY[0]], PastCaps)
        asked_at += [clock.time_s] if server.asked else []
    assert asked_at == [0, 60, 180, 420, 900, 1_800, 2_700]
    http.close()


def test_a_run_that_was_deleted_says_so(server: Standin):
    server.script = lambda asked: plain(run_json("r000", lifecycle_stage="deleted"))
    answer = source_of(server.uri).read(MANY[:1])[MANY[0]]
    assert isinstance(answer, RunReading)
    assert answer.facts.deleted
    with pytest.raises(Rejected, match="deleted"):
        source_of(server.uri).mark_killed("r000")


def test_a_ping_needs_no_experiment_but_the_right_to_ask(server: Standin):
    gone = plain({"error_code": "RESOURCE_DOES_NOT_EXIST"}, 404)
    server.script = lambda asked: plain({}) if asked.path.endswith("/experiments/search") else gone
    assert source_of(server.uri).ping() == "its API answers; evals are read by a call for each run"
    server.script = lambda asked: plain({}) if asked.path == "/health" else raw(b"", 403)
    with pytest.raises(Rejected, match="no permission"):
        source_of(server.uri).ping()


def with_metrics(run_id: str, *metrics: str) -> dict[str, object]:
    found = run_json(run_id)
    listed = [{"key": key, "value": 0.5, "step": 1, "timestamp": 1} for key in metrics]
    return {"run": {**found["run"], "data": {"metrics": listed}}}  # type: ignore[dict-item]


def test_standard_errors_and_a_proxy_cost_a_call_only_where_the_run_has_them(server: Standin):
    def script(asked: Asked) -> Reply:
        if asked.path.endswith("/runs/get"):
            return plain(
                with_metrics(asked.query["run_id"], *(("m", "m_stderr") if asked.query["run_id"] == "a" else "m"))
            )
        return plain({"metrics": [point_json(asked.query["metric_key"])]})

    server.script = script
    _, readings = timed(source_of(server.uri), [RunQuery("a", "m", "reward"), RunQuery("b", "m", "reward")])
    assert healthy(readings) == {"a", "b"}
    asked = sorted((one.query["run_id"], one.query.get("metric_key", "")) for one in server.asked)
    assert asked == [("a", ""), ("a", "m"), ("a", "m_stderr"), ("b", ""), ("b", "m")]


def test_errors_that_cannot_be_read_cost_the_reading_and_a_proxy_that_cannot_does_not(server: Standin):
    """Without its errors a run would be judged too boldly; without its proxy only an alarm is missing."""

    def script(asked: Asked) -> Reply:
        if asked.path.endswith("/runs/get"):
            beside = "m_stderr" if asked.query["run_id"] == "a" else "reward"
            return plain(with_metrics(asked.query["run_id"], "m", beside))
        if asked.query["metric_key"] == "m":
            return plain({"metrics": [point_json("m")]})
        return plain({"metrics": "broken"})

    server.script = script
    _, readings = timed(source_of(server.uri), [RunQuery("a", "m", "reward"), RunQuery("b", "m", "reward")])
    assert healthy(readings) == {"b"}


def test_a_listing_whose_pages_never_end_is_given_up(server: Standin):
    def script(asked: Asked) -> Reply:
        if asked.path.endswith("/runs/search"):
            return plain({"runs": [run_json("a")["run"]], "next_page_token": "again"})
        return plain({"experiment": {"experiment_id": "7"}})

    server.script = script
    with pytest.raises(Unavailable, match="again and again"):
        source_of(server.uri).runs_of("past", 100)


@pytest.mark.parametrize(("ways", "calls"), [(Ways(), 6), (ALONE, 200)])
def test_where_the_time_is_short_the_first_ones_are_read(monkeypatch: pytest.MonkeyPatch, ways: Ways, calls: int):
    """Facts as well as evals, whatever the runs and their metrics are called."""
    monkeypatch.setattr(source_module, "_BATCH", 80)
    small = SmallMlflow()
    queries = [RunQuery(f"r{number:04}", "ab"[number % 2]) for number in range(170)]
    for query in queries:
        small.add(query.run_id, **{query.metric: [(1, 0.5, 1)]})
    small.trouble = lambda asked: None if len(small.calls) <= calls else raw(b"", 503)
    with Standin(small) as server:
        http = Http(Server(server.uri, timeout_s=PATIENT_S))
        source = MlflowSource(http, FixedClock(), None, None, ways)
        for order in (queries, queries[::-1]):
            small.calls.clear()
            read = {query for query, each in source.read(order).items() if isinstance(each, RunReading)}
            assert set(order[:80]) <= read
            assert read < set(order)
        http.close()


def two_series(asked: Asked) -> Reply:
    """Answer as MLflow does of runs, of one of which it has models, and two values of the metric at each step."""
    if asked.path.endswith("/runs/get"):
        run = run_json(asked.query["run_id"])
        if asked.query["run_id"] == "mixed":
            run["run"]["outputs"] = {"model_outputs": [{"model_id": "m-1", "step": 0}]}  # type: ignore[index]
        return plain(run)
    if asked.query.get("run_id") != "mixed":
        return plain({"metrics": [point_json("m", step) for step in range(4)]})
    points = [{**point_json("m", step), "value": value} for step in range(4) for value in (0.5, 0.25)]
    return plain({"metrics": points})


@pytest.mark.parametrize("dataset", ["", "clean"])
@pytest.mark.parametrize("trouble", standin.each(["hang", "half", "html", "500", "403", "large", "types"]))
def test_models_that_cannot_be_asked_cost_their_own_job_alone(server: Standin, dataset: str, trouble: str):
    bad = TROUBLES[trouble] if trouble != "types" else plain({"models": 5})
    server.script = lambda asked: bad if asked.path.endswith("/logged-models/search") else two_series(asked)
    queries = [RunQuery(run_id, "m", dataset=dataset) for run_id in ("mixed", *(f"r{n}" for n in range(9)))]
    readings = timed(source_of(server.uri, LIMIT_S if trouble == "hang" else PATIENT_S), queries)[1]
    mixed = readings.pop(queries[0])
    assert len(healthy(readings)) == 9
    assert all(isinstance(each, RunReading) and not each.untold for each in readings.values())
    if isinstance(mixed, RunReading):
        assert "they cannot be told apart: " in mixed.untold
    else:
        assert isinstance(mixed, (Unavailable, PastCaps))


def test_what_tells_datasets_apart_is_asked_for_after_all_other_runs(server: Standin):
    server.script = two_series
    queries = [RunQuery(run_id, "m", dataset="clean") for run_id in ("mixed", *(f"r{n}" for n in range(9)))]
    source_of(server.uri).read(queries)
    routes = [asked.path.rpartition("/")[2] for asked in server.asked]
    assert routes[:20].count("get-history") == 10
    assert routes[20:] == ["get", "search", "m-1"]


def test_a_chosen_dataset_is_asked_for_from_the_first_value_on_and_again_only_when_a_value_has_come(server: Standin):
    """The run has models, and one series so far: which dataset's it is only they tell."""
    told = [
        {**point_json("m", step), "run_id": "one", "dataset_name": "noisy", "dataset_digest": "n"} for step in range(3)
    ]
    found = [{"info": {"model_id": "m-1"}, "data": {"metrics": told}}]
    values = 1

    def script(asked: Asked) -> Reply:
        if asked.path.endswith("/runs/get"):
            run = run_json("one")
            run["run"]["inputs"] = {"model_inputs": [{"model_id": "m-1"}]}  # type: ignore[index]
            return plain(run)
        if asked.path.endswith("/logged-models/search"):
            return plain({"models": found})
        return plain({"metrics": [point_json("m", step) for step in range(values)]})

    server.script = script
    source, query = source_of(server.uri), RunQuery("one", "m", dataset="clean")
    # Of the first two steps its own value may still come.
    for values, times, said in ((1, 1, False), (1, 1, False), (2, 2, False), (3, 3, True), (3, 3, True)):
        reading = source.read([query])[query]
        assert isinstance(reading, RunReading)
        assert (reading.dataset, len(reading.points)) == ("", values if said else 0)
        assert ("clean is none of the dataset noisy (digest n)" in reading.untold) is said
        assert sum(asked.path.endswith("/logged-models/search") for asked in server.asked) == times
