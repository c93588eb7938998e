"""The source against a real MLflow server: the contract, paging, outages, and what a pass costs."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow.gate import ServerGate
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.runs import TAG_BYTES, fit
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource
from evalstopd.core.mixed import mixed_caution
from evalstopd.errors import Rejected, Unavailable
from evalstopd.loop.claims import MOST_SOUGHT
from evalstopd.ports import RunQuery, RunReading
from evalstopd.report.replay.judge import judge
from evalstopd.report.replay.sources import read_source
from tests.adapters.mlflow.tracker import NOW_S, FixedClock, Tracker
from tests.contracts.metrics_contract import METRIC, MetricsContract, reading
from tests.contracts.run_finder_contract import RunFinderContract
from tests.contracts.run_list_contract import RunListContract

pytestmark = pytest.mark.mlflow


@pytest.fixture
def tracker(mlflow_server: MlflowServer) -> Iterator[Tracker]:
    tracker = Tracker(mlflow_server.uri)
    yield tracker
    tracker.http.close()


class TestMlflowKeepsTheContract(MetricsContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


class TestMlflowKeepsTheContractOfRunList(RunListContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


class TestMlflowKeepsTheContractOfRunFinder(RunFinderContract):
    @pytest.fixture
    def world(self, tracker: Tracker) -> Tracker:
        return tracker


def test_an_open_server_is_seen_to_be_open(tracker: Tracker):
    gate = ServerGate(tracker.http, Server(tracker.uri, timeout_s=30))
    assert gate.admits_strangers()
    gate.close()


def test_runs_are_found_in_every_experiment(tracker: Tracker):
    experiment = tracker.make_experiment("elsewhere")
    run_id = tracker.add_run(experiment, 1)
    tracker.source.tag(run_id, {"slurm.job_id": "8801", "slurm.cluster": "c"})
    found = tracker.source.naming("c", [8801])[8801]
    assert isinstance(found, tuple)
    assert [(run.run_id, run.started_ms) for run in found] == [(run_id, 1)]


@pytest.mark.timed
def test_a_pass_looks_for_a_full_load_of_jobs_in_seconds(tracker: Tracker, record_property):
    """The most jobs that are looked for at once, among 200 running runs."""
    for number in range(200):
        tracker.make_run({"slurm.job_id": str(7_000 + number), "slurm.cluster": "c"}, {})
    began = time.monotonic()
    found = tracker.source.naming("c", list(range(7_000, 7_000 + MOST_SOUGHT)))
    took_s = time.monotonic() - began
    record_property("seconds", took_s)
    print(f"{MOST_SOUGHT} jobs looked for among 200 runs: {took_s:.2f} s")
    assert all(isinstance(answer, tuple) and len(answer) == 1 for answer in found.values())
    assert took_s < 30


def test_replay_reads_an_experiment_of_the_live_server(tracker: Tracker):
    """Two runs, one with standard errors; what is not held out is not read."""
    experiment = tracker.make_experiment("past")
    falling, rising = tracker.add_run(experiment, 1), tracker.add_run(experiment, 2)
    for run_id, scores in ((falling, (0.1, 0.9, 0.5, 0.4, 0.3, 0.2)), (rising, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))):
        tracker.log(run_id, METRIC, [(step, score, step) for step, score in enumerate(scores)])
        tracker.log(run_id, "train/loss", [(1, 9.0, 1)])
    tracker.log(falling, f"{METRIC}_stderr", [(step, 0.01, step) for step in range(6)])
    found = {each.name: each for each in read_source(Path("mlflow:past"), None, lambda: tracker.source)}
    assert set(found) == {falling, rising}
    assert {each.metric for each in found.values()} == {METRIC}
    assert [each.stderr for each in found[falling].evals] == [0.01] * 6
    assert [judge(found[run_id], "k-declines:k=2").stopped for run_id in (falling, rising)] == [3, None]


def test_an_experiment_that_is_not_there_is_said_to_be_none(tracker: Tracker):
    with pytest.raises(Rejected, match="no such experiment: 'nosuch'"):
        list(read_source(Path("mlflow:nosuch"), None, lambda: tracker.source))


def test_an_eval_of_two_datasets_under_one_name_is_seen_to_be_mixed(tracker: Tracker):
    """As `log_metric(..., dataset=)` sends it; no history of MLflow's tells which value is of which dataset."""
    run_id = tracker.make_run({}, {})
    scores = [(0.6, 0.3), (0.7, 0.35), (0.8, 0.4), (0.85, 0.38)]
    for number, pair in enumerate(scores, 1):
        values = [
            {"key": METRIC, "step": number * 10, "value": value, "timestamp": number * 1_000, "dataset_name": name,
             "dataset_digest": name}
            for name, value in zip(("clean", "noisy"), pair, strict=True)
        ]  # fmt: skip
        tracker.call("/runs/log-batch", {"run_id": run_id, "metrics": values})
    points = reading(tracker, run_id).points
    assert sorted(point.value for point in points) == sorted(value for pair in scores for value in pair)
    caution = mixed_caution(points)
    assert caution is not None
    assert caution.refuse


def test_a_history_of_many_pages_is_whole(tracker: Tracker):
    run_id = tracker.make_run({}, {})
    tracker.log(run_id, METRIC, [(step, step / 7, step) for step in range(1_234)])
    paged = MlflowSource(tracker.http, FixedClock(), Caps(page=100))
    (answer,) = paged.read([RunQuery(run_id, METRIC)]).values()
    assert isinstance(answer, RunReading)
    assert answer.points == reading(tracker, run_id).points
    assert [point.step for point in answer.points] == list(range(1_234))


def test_a_flood_of_points_is_rejected_and_the_neighbour_is_read(tracker: Tracker):
    flooded, calm = tracker.make_run({}, {}), tracker.make_run({}, {})
    tracker.log(flooded, METRIC, [(step, 0.5, step) for step in range(301)])
    tracker.log(calm, METRIC, [(step, 0.5, step) for step in range(300)])
    capped = MlflowSource(tracker.http, FixedClock(), Caps(points=300, page=100))
    readings = {q.run_id: r for q, r in capped.read([RunQuery(flooded, METRIC), RunQuery(calm, METRIC)]).items()}
    assert isinstance(readings[flooded], Rejected)
    assert "too many points" in str(readings[flooded])
    assert isinstance(readings[calm], RunReading)


def test_a_long_tag_is_cut_where_anyone_sees_it(tracker: Tracker):
    """3.17 itself takes 8,000 characters and cuts the rest in silence; letters of several bytes are not torn."""
    run_id = tracker.make_run({}, {})
    tracker.source.tag(run_id, {"evalstop.reason": "é" * 9_000})
    kept = reading(tracker, run_id).facts.tags["evalstop.reason"]
    assert kept == fit("é" * 9_000)
    assert kept.endswith("é...")
    assert TAG_BYTES - 2 <= len(kept.encode()) <= TAG_BYTES


def test_more_tags_than_one_call_takes_are_all_set(tracker: Tracker):
    run_id = tracker.make_run({}, {})
    tags = {f"evalstop.t{number}": str(number) for number in range(205)}
    tracker.source.tag(run_id, tags)
    assert tags.items() <= reading(tracker, run_id).facts.tags.items()


def test_a_tag_name_that_mlflow_refuses_is_rejected_in_its_words(tracker: Tracker):
    run_id = tracker.make_run({}, {})
    with pytest.raises(Rejected, match="INVALID_PARAMETER_VALUE"):
        tracker.source.tag(run_id, {"a\nb" * 300: "x"})


def test_killed_is_written_with_our_clock(tracker: Tracker):
    run_id = tracker.make_run({}, {})
    tracker.source.mark_killed(run_id)
    body = httpx.get(f"{tracker.uri}/api/2.0/mlflow/runs/get", params={"run_id": run_id}, trust_env=False).json()
    assert body["run"]["info"]["end_time"] == int(NOW_S * 1000)


@pytest.mark.timed
def test_a_server_that_hangs_and_comes_back(mlflow_server: MlflowServer, tracker: Tracker):
    """While it hangs, twenty runs cost two time limits in all; afterwards the same source reads them."""
    queries = [RunQuery(tracker.make_run({}, {}), METRIC) for _ in range(20)]
    http = Http(Server(tracker.uri, timeout_s=1))
    source = MlflowSource(http, FixedClock())
    mlflow_server.pause()
    began = time.monotonic()
    try:
        readings = source.read(queries)
    finally:
        mlflow_server.resume()
    assert time.monotonic() - began < 3
    assert all(isinstance(answer, Unavailable) for answer in readings.values())
    assert all(isinstance(answer, RunReading) for answer in tracker.source.read(queries).values())
    http.close()


def test_a_server_that_is_gone_and_comes_back(mlflow_server: MlflowServer, tracker: Tracker):
    """Connections that the old server left open do not cost the next pass its readings."""
    queries = [RunQuery(tracker.make_run({}, {}), METRIC) for _ in range(5)]
    assert all(isinstance(answer, RunReading) for answer in tracker.source.read(queries).values())
    mlflow_server.kill()
    try:
        assert all(isinstance(answer, Unavailable) for answer in tracker.source.read(queries).values())
    finally:
        mlflow_server.start()
    assert all(isinstance(answer, RunReading) for answer in tracker.source.read(queries).values())


def test_the_api_answers_a_ping(tracker: Tracker):
    assert tracker.source.ping() == "its API answers; evals are read by bulk history"


@pytest.mark.timed
def test_fifty_runs_of_fifty_points_are_read_in_seconds(tracker: Tracker, record_property):
    run_ids = [tracker.make_run({}, {}) for _ in range(50)]
    for run_id in run_ids:
        tracker.log(run_id, METRIC, [(step, step / 7, step) for step in range(50)])
    began = time.monotonic()
    readings = tracker.source.read([RunQuery(run_id, METRIC) for run_id in run_ids])
    took_s = time.monotonic() - began
    record_property("seconds", took_s)
    print(f"50 runs x 50 points with 4 threads: {took_s:.2f} s")
    assert [len(answer.points) for answer in readings.values() if isinstance(answer, RunReading)] == [50] * 50
    assert took_s < 30
