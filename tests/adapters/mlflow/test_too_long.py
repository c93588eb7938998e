"""Answers longer than any that is read: asked for again in halves, held against no run but one that is so alone."""

import json

import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow import finder
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.problems import TooLong, TooMuch
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.core.binding import RunFacts
from evalstopd.errors import PastCaps, Unavailable
from evalstopd.ports import RunQuery, RunReading
from tests.adapters.mlflow.small_mlflow import Row, SmallMlflow
from tests.adapters.mlflow.standin import Asked, Reply, Standin, plain, run_json
from tests.adapters.mlflow.tracker import FixedClock, Tracker

BULK, HISTORY, SEARCH, GET = "/metrics/get-history-bulk", "/metrics/get-history", "/runs/search", "/runs/get"


def source_of(server: Standin, most: int, page: int = 10_000, ways: Ways | None = None) -> MlflowSource:
    http = Http(Server(server.uri, timeout_s=60, max_bytes=most))
    return MlflowSource(http, FixedClock(), Caps(page=page), None, ways)


def rising(count: int) -> list[Row]:
    return [(step, step / 7, step) for step in range(count)]


def read(source: MlflowSource, small: SmallMlflow) -> dict[str, int | str]:
    small.calls.clear()
    answers = source.read([RunQuery(run_id, "m") for run_id in small.runs])
    return {
        query.run_id: len(each.points) if isinstance(each, RunReading) else type(each).__name__
        for query, each in answers.items()
    }


@pytest.mark.parametrize("ways", [Ways(bulk_interval=False), Ways(bulk_history=False)])
def test_a_bulk_answer_that_is_too_long_is_asked_for_in_halves(server: Standin, small: SmallMlflow, ways: Ways):
    """Forty runs take 180 kB; the way stays in use, and no run is read by itself."""
    for number in range(40):
        small.add(f"r{number:02}", m=rising(50))
    source = source_of(server, 60_000, ways=ways)
    for _ in range(2):
        assert set(read(source, small).values()) == {50}
        assert HISTORY not in small.calls
    assert sum(call.startswith(BULK) for call in small.calls) == 7


def test_a_series_too_long_by_itself_is_read_page_by_page_and_no_more_asked_for_in_bulk(
    server: Standin, small: SmallMlflow
):
    for number in range(7):
        small.add(f"r{number}", m=rising(50))
    small.add("wide", m=rising(1_500))
    source = source_of(server, 60_000, page=500)
    expected = {**{f"r{number}": 50 for number in range(7)}, "wide": 1_500}
    assert read(source, small) == expected
    assert read(source, small) == expected
    assert (small.calls.count(BULK), small.calls.count(HISTORY)) == (1, 3)


def test_facts_too_long_together_are_searched_for_in_halves(server: Standin, small: SmallMlflow):
    for number in range(20):
        small.add(f"r{number:02}", m=rising(3)).tags["note"] = "x" * 5_000
    assert set(read(source_of(server, 60_000), small).values()) == {3}
    assert GET not in small.calls


def test_a_run_whose_own_facts_are_too_long_is_quarantined_alone(server: Standin, small: SmallMlflow):
    for number in range(20):
        small.add(f"r{number:02}", m=rising(3))
    small.runs["r13"].tags["note"] = "x" * 61_000
    source = source_of(server, 60_000)
    for _ in range(2):
        found = read(source, small)
        assert found.pop("r13") == "TooMuch"
        assert set(found.values()) == {3}


def test_a_run_that_grew_too_long_and_was_deleted_is_not_taken_for_one_that_is_there(
    server: Standin, small: SmallMlflow
):
    """What is remembered of it stands only while a search shows that it was not deleted."""
    for number in range(10):
        small.add(f"r{number}", m=rising(3))
    source = source_of(server, 60_000)
    for _ in range(3):
        read(source, small)
    small.runs["r4"].deleted = True
    small.runs["r4"].tags["note"] = "x" * 61_000
    found = read(source, small)
    assert found.pop("r4") == "TooMuch"
    assert set(found.values()) == {3}


def tracker_of(experiments: list[int], runs: dict[str, list[int]]) -> SmallMlflow:
    """A tracker with experiments of these sizes in bytes, and for each job runs of these sizes; it pages by offset."""

    def page(asked: Asked, name: str, entries: list[object]) -> Reply:
        body = json.loads(asked.body)
        start = int(body.get("page_token") or 0)
        end = start + body["max_results"]
        return plain({name: entries[start:end], **({"next_page_token": str(end)} if end < len(entries) else {})})

    def answer(asked: Asked) -> Reply | None:
        if asked.path.endswith("/experiments/search"):
            return page(asked, "experiments", [{"experiment_id": "0", "tags": "x" * size} for size in experiments])
        job = json.loads(asked.body)["filter"].split("`slurm.job_id` = '")[1].split("'")[0]
        sized = [{**run_json(f"{job}-{at}"), "pad": "x" * size} for at, size in enumerate(runs[job])]
        return page(asked, "runs", [{**each["run"], "pad": each["pad"]} for each in sized])  # type: ignore[dict-item]

    return SmallMlflow(trouble=answer)


def named(tracker: SmallMlflow) -> dict[int, object]:
    with Standin(tracker) as server:
        http = Http(Server(server.uri, timeout_s=60, max_bytes=60_000))
        found = finder.naming(Pass(http, 4, 60), 4, "c", [1, 2])
        http.close()
    return {job: [run.run_id for run in each] if isinstance(each, tuple) else type(each) for job, each in found.items()}


def test_experiments_and_runs_are_listed_by_smaller_pages_where_one_is_too_long():
    tracker = tracker_of([5_000] * 40, {"1": [9_000] * 20, "2": [0]})
    assert named(tracker) == {1: [f"1-{at}" for at in range(20)], 2: ["2-0"]}


def test_a_run_too_long_by_itself_costs_the_job_that_it_names_alone():
    assert named(tracker_of([0], {"1": [61_000], "2": [0]})) == {1: TooMuch, 2: ["2-0"]}


def test_a_list_of_experiments_that_cannot_be_read_is_trouble_and_quarantines_no_job():
    found = named(tracker_of([0, 61_000], {"1": [0], "2": [0]}))
    assert found == {1: TooLong, 2: TooLong}
    assert issubclass(TooLong, Unavailable)
    assert not issubclass(TooLong, PastCaps)


@pytest.mark.mlflow
def test_a_real_server_lists_the_same_by_smaller_pages(mlflow_server: MlflowServer):
    """Its page tokens are good for pages of another size."""
    tracker = Tracker(mlflow_server.uri)
    experiment = tracker.make_experiment("too-long")
    for number in range(12):
        tracker.make_experiment(f"too-long-{number}")
    made = [tracker.add_run(experiment, number) for number in range(9)]
    for number, run_id in enumerate(made):
        tags = [{"key": "slurm.job_id", "value": "77001"}, {"key": "slurm.cluster", "value": "c"}]
        tags += [{"key": f"note{at}", "value": str(number) * 4_000} for at in range(3)]
        tracker.call("/runs/log-batch", {"run_id": run_id, "tags": tags})
        tracker.log(run_id, "m", [(step, 0.5, step) for step in range(1_000)])
    clients = [Http(Server(mlflow_server.uri, timeout_s=60, max_bytes=most)) for most in (230_000, 30_000)]
    narrow, narrower = (MlflowSource(http, FixedClock()) for http in clients)

    (found,) = narrower.naming("c", [77001]).values()
    assert isinstance(found, tuple), found
    assert {run.run_id for run in found} == set(made)
    assert [run.run_id for run in narrower.runs_of("too-long", 100)] == made[::-1]
    readings = narrow.read([RunQuery(run_id, "m") for run_id in made])
    assert [each.points for each in readings.values() if isinstance(each, RunReading)] == [
        each.points for each in tracker.source.read(list(readings)).values() if isinstance(each, RunReading)
    ]
    for http in (*clients, tracker.http):
        http.close()
    assert len(readings) == 9
    assert all(isinstance(each, RunReading) and isinstance(each.facts, RunFacts) for each in readings.values())
