"""A server that asks one question to come later (HTTP 429): that one waits, and nobody else's evals are lost."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count

import pytest

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.later import pause_s, retry_after_s
from evalstopd.adapters.mlflow.problems import Busy
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Pace, Ways
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.ports import RunQuery, RunReading
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Asked, Reply, Standin, raw
from tests.adapters.mlflow.tracker import FixedClock

BULK, INTERVAL, HISTORY = "/metrics/get-history-bulk", "/metrics/get-history-bulk-interval", "/metrics/get-history"
SEARCH, GET = "/runs/search", "/runs/get"
RUNS = 250
ALONE = Ways(search=False, bulk_history=False, bulk_interval=False)
LATER = raw(b"", 429, "Retry-After: 1")
MUCH_LATER = raw(b"", 429, "Retry-After: 3600")
Trouble = Callable[[Asked], Reply | None]


@pytest.fixture
def small() -> SmallMlflow:
    small = SmallMlflow()
    for number in range(RUNS):
        small.add(f"r{number:03}", m=[(1, 0.5, 1), (2, 0.25, 2)])
    return small


@pytest.fixture
def server(small: SmallMlflow) -> Iterator[Standin]:
    with Standin(small) as server:
        yield server


def source_of(server: Standin, ways: Ways | None = None, seconds: float = 60.0) -> MlflowSource:
    """Return a source by whose clock hours go by between two questions, so that no run's facts are remembered."""
    hours = count(step=100_000.0)
    http = Http(Server(server.uri, timeout_s=60))
    return MlflowSource(http, FixedClock(), None, Pace(4, seconds), ways, lambda: next(hours))


def queries(small: SmallMlflow) -> list[RunQuery]:
    return [RunQuery(run_id, "m") for run_id in small.runs]


def unread(readings: Mapping[RunQuery, RunReading | EvalstopError]) -> dict[str, str]:
    return {query.run_id: str(each) for query, each in readings.items() if isinstance(each, EvalstopError)}


def names(asked: Asked, run_id: str) -> bool:
    return run_id in asked.target or run_id.encode() in asked.body


def once(route: str, run_id: str, reply: Reply) -> Trouble:
    """Give this reply to the first question by this route about this run."""
    left = [reply]

    def trouble(asked: Asked) -> Reply | None:
        return left.pop() if left and asked.path.endswith(f"mlflow{route}") and names(asked, run_id) else None

    return trouble


def always(route: str, run_id: str, reply: Reply) -> Trouble:
    return lambda asked: reply if asked.path.endswith(f"mlflow{route}") and names(asked, run_id) else None


@pytest.mark.parametrize(("route", "ways"), [(BULK, None), (SEARCH, None), (GET, ALONE), (HISTORY, ALONE)])
def test_a_question_that_is_put_off_waits_as_long_as_it_is_asked_to_and_is_put_again(
    server: Standin, small: SmallMlflow, route: str, ways: Ways | None
):
    source = source_of(server, ways)
    source.read(queries(small))
    small.calls.clear()
    source.read(queries(small))
    usual = Counter(small.calls)
    small.trouble = once(route, "r120", LATER)
    small.calls.clear()
    began = time.monotonic()
    assert unread(source.read(queries(small))) == {}
    assert time.monotonic() - began >= 1.0
    assert Counter(small.calls) == usual + Counter([route])


@pytest.mark.parametrize("reply", [LATER, MUCH_LATER], ids=["put off again", "put off for an hour"])
@pytest.mark.parametrize(("route", "ways", "lost"), [(BULK, None, 100), (SEARCH, None, 100), (HISTORY, ALONE, 1)])
def test_what_cannot_be_read_costs_the_runs_of_that_question_alone(
    server: Standin, small: SmallMlflow, route: str, ways: Ways | None, lost: int, reply: Reply
):
    """And they are not asked for in another way: that would be more questions to a server that asks for fewer."""
    source = source_of(server, ways)
    source.read(queries(small))
    small.trouble = always(route, "r120", reply)
    small.calls.clear()
    missed = unread(source.read(queries(small)))
    assert "r120" in missed
    assert len(missed) == lost
    assert all("asks for patience (HTTP 429)" in why for why in missed.values())
    if ways is None:
        assert not {GET, HISTORY, INTERVAL} & set(small.calls)


def test_who_could_not_be_read_is_held_to_nothing_and_asked_in_his_place_next_time(server: Standin, small: SmallMlflow):
    source = source_of(server)
    source.read(queries(small))
    small.trouble = always(BULK, "r020", MUCH_LATER)
    assert len(unread(source.read(queries(small)))) == 100
    small.trouble = lambda asked: None
    server.asked.clear()
    assert unread(source.read(queries(small))) == {}
    bulk = [asked for asked in server.asked if asked.path.endswith(BULK)]
    assert len(bulk) == 3
    assert any(names(asked, "r020") for asked in bulk)


def test_no_question_waits_beyond_the_time_of_its_pass(server: Standin, small: SmallMlflow):
    """A question has a quarter of it, for all others wait with it."""
    small.trouble = always(BULK, "r000", raw(b"", 429, "Retry-After: 61"))
    began = time.monotonic()
    missed = unread(source_of(server, seconds=240.0).read(queries(small)))
    assert "r000" in missed
    assert small.calls.count(BULK) == 1
    assert time.monotonic() - began < 61.0


def test_a_server_that_puts_everybody_off_is_left_alone_and_nobody_waits_for_it(server: Standin, small: SmallMlflow):
    """As many in a row as there are threads: who waits already waits no longer."""
    small.trouble = lambda asked: raw(b"", 429, "Retry-After: 90")
    began = time.monotonic()
    readings = source_of(server, ALONE, seconds=480.0).read(queries(small))
    assert len(unread(readings)) == RUNS
    assert all(isinstance(each, Unavailable) for each in readings.values())
    assert len(small.calls) <= 4
    assert time.monotonic() - began < 90.0


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 0 "}, 0.0),
        ({"Retry-After": "9" * 5_000}, 86_400.0),
        ({"Retry-After": "Mon, 30 Nov 2026 10:00:09 GMT", "Date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 9.0),
        ({"Retry-After": "Mon, 30 Nov 2026 09:00:00 GMT", "Date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 0.0),
        ({"Retry-After": "Mon, 30 Nov 2026 10:00:09 GMT"}, None),
        ({"Retry-After": "Mon, 30 Nov 2026 10:00:09 -0000", "Date": "Mon, 30 Nov 2026 10:00:00 GMT"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "\u0663"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_what_retry_after_says_is_understood_or_ignored(headers: dict[str, str], after_s: float | None):
    assert retry_after_s(headers) == after_s


def test_nobody_waits_shorter_than_he_was_asked_to_and_not_all_equally_long():
    waits = {pause_s(4.0) for _ in range(50)}
    assert all(4.0 <= each <= 5.0 for each in waits)
    assert len(waits) > 1
    assert min(pause_s(0.0) for _ in range(50)) >= 0.5
    assert all(2.0 <= pause_s(None) <= 2.5 for _ in range(50))


def test_the_wait_comes_with_the_problem():
    with Standin(lambda asked: LATER) as server, pytest.raises(Busy) as caught:
        Http(Server(server.uri, timeout_s=60)).get("/runs/get", {})
    assert caught.value.after_s == 1.0
