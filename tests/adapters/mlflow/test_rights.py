"""A login that opens nothing blinds the whole daemon, and says so; one closed run is closed alone."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.problems import Forbidden, LockedOut
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource
from evalstopd.errors import Unavailable
from evalstopd.loop import Tracker
from evalstopd.ports import Ports, RunQuery, RunReading
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Asked, Reply, Standin, plain, raw
from tests.adapters.mlflow.tracker import FixedClock
from tests.fakes.world import World

JOBS = 5


@pytest.fixture
def source(server: Standin) -> Iterator[MlflowSource]:
    http = Http(Server(server.uri, timeout_s=60))
    yield MlflowSource(http, FixedClock())
    http.close()


def watched(small: SmallMlflow, source: MlflowSource) -> tuple[World, Ports]:
    """Return a world whose jobs' runs lie on the small server."""
    world = World()
    for number in range(JOBS):
        world.train(f"r{number}")
        small.add(f"r{number}", score=[(10, 0.1, 1_000_000)])
    return world, replace(world.ports(), metrics=source)


def closed(small: SmallMlflow, *run_ids: str) -> None:
    """Close these runs to us, as basic-auth does: searches leave them out, everything else is refused."""

    def trouble(asked: Asked) -> Reply | None:
        if asked.path.endswith("/runs/search"):
            return plain({})
        named = {asked.query.get("run_id"), *asked.several("run_id"), *asked.several("run_ids")}
        return raw(b"Permission denied", 403) if named & set(run_ids) else None

    small.trouble = trouble


def remarks(world: World) -> list[str]:
    return [each.code for each in world.store.book("c").said]


@pytest.mark.parametrize("status", [401, 403])
def test_a_login_that_opens_nothing_is_trouble_of_the_pass_and_nobodys_remark(
    small: SmallMlflow, source: MlflowSource, status: int
):
    world, ports = watched(small, source)
    assert "5 watched, 5 read, 5 new evals; nothing to do" in world.tick(ports=ports).summary
    small.trouble = lambda asked: raw(b"", status)
    for _ in range(2):
        report = world.tick(1_000, ports)
        assert "5 watched, 0 read, 0 new evals; nothing to do; trouble: MLflow: " in report.summary
        assert f"(HTTP {status})" in report.summary
        assert report.tracker is Tracker.FAILED
    assert remarks(world) == []
    small.trouble = lambda asked: None
    report = world.tick(1_000, ports)
    assert (report.counts["read"], report.troubles) == (JOBS, ())


def test_one_closed_run_is_its_own_jobs_also_where_no_other_is_due(small: SmallMlflow, source: MlflowSource):
    for number in range(JOBS):
        small.add(f"r{number}", m=[(1, 0.5, 1)])
    queries = [RunQuery(f"r{number}", "m") for number in range(JOBS)]
    closed(small, "r0", "r1")
    for asked in (queries, queries[:2], queries[:1]):
        found = source.read(asked)
        assert [query.run_id for query, each in found.items() if isinstance(each, Forbidden)] == [
            query.run_id for query in asked[:2]
        ]
        assert all(isinstance(each, RunReading | Forbidden) for each in found.values())


def test_what_could_be_read_before_and_is_closed_now_tells_that_our_right_is_gone(
    small: SmallMlflow, source: MlflowSource
):
    for number in range(JOBS):
        small.add(f"r{number}", m=[(1, 0.5, 1)])
    queries = [RunQuery(f"r{number}", "m") for number in range(JOBS)]
    source.read(queries)
    closed(small, *small.runs)
    (answer,) = source.read(queries[:1]).values()
    assert isinstance(answer, LockedOut)
    assert "for any run that was asked for: look at the rights of our login" in str(answer)


@pytest.mark.parametrize("listed", [True, False])
def test_a_daemon_just_started_asks_whether_anything_is_open_at_all(
    small: SmallMlflow, source: MlflowSource, listed: bool
):
    """Who may see nothing gets an empty list of experiments."""
    small.add("r0", m=[(1, 0.5, 1)])
    closed(small, "r0")
    refused = small.trouble
    small.trouble = lambda asked: (
        plain({}) if asked.path.endswith("/experiments/search") and not listed else refused(asked)
    )
    (answer,) = source.read([RunQuery("r0", "m")]).values()
    assert type(answer) is (Forbidden if listed else LockedOut)


def test_several_runs_and_all_of_them_closed_is_our_right_that_is_missing(small: SmallMlflow, source: MlflowSource):
    for number in range(2):
        small.add(f"r{number}", m=[(1, 0.5, 1)])
    closed(small, *small.runs)
    found = source.read([RunQuery("r0", "m"), RunQuery("r1", "m")])
    assert {type(each) for each in found.values()} == {LockedOut}


def test_a_list_of_experiments_that_is_closed_to_us_refuses_no_jobs_runs(small: SmallMlflow, source: MlflowSource):
    small.trouble = lambda asked: raw(b"", 403)
    (answer,) = source.naming("c", [7]).values()
    assert isinstance(answer, Unavailable)
    assert "(HTTP 403) to list experiments" in str(answer)
