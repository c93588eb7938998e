"""The ways of reading many runs: the same points by each, and whoever breaks one of them breaks it for himself."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from evalstopd.adapters.mlflow.bulk import BulkHistory, BulkInterval
from evalstopd.adapters.mlflow.footing import Footing
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.ladder import Ladder, Rung
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.ports import RunQuery, RunReading
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.small_mlflow import MOST_ROWS, Row, SmallMlflow
from tests.adapters.mlflow.standin import Asked, Reply, Standin, plain, raw
from tests.adapters.mlflow.tracker import FixedClock

# For servers that hang; a slow machine must not take a good answer for silence.
LIMIT_S = 1.0
PATIENT_S = 60.0
BULK, INTERVAL, HISTORY = "/metrics/get-history-bulk", "/metrics/get-history-bulk-interval", "/metrics/get-history"
WAYS = {
    "bulk history": Ways(bulk_interval=False),
    "bulk interval": Ways(bulk_history=False),
    "run by run": Ways(bulk_history=False, bulk_interval=False),
    "no search": Ways(search=False),
}


def source_of(
    server: Standin, ways: Ways | None = None, caps: Caps | None = None, limit_s: float = PATIENT_S
) -> MlflowSource:
    return MlflowSource(Http(Server(server.uri, timeout_s=limit_s)), FixedClock(), caps, None, ways)


def limit_for(fault: object) -> float:
    return LIMIT_S if fault in ("hang", standin.hang) else PATIENT_S


def rising(count: int, first: int = 0) -> list[Row]:
    return [(step, step / 7, step) for step in range(first, first + count)]


def queries(small: SmallMlflow, metric: str = "m") -> list[RunQuery]:
    return [RunQuery(run_id, metric) for run_id in small.runs]


def lengths(readings: object) -> dict[str, int | str]:
    assert isinstance(readings, dict)
    return {
        query.run_id: len(each.points) if isinstance(each, RunReading) else type(each).__name__
        for query, each in readings.items()
    }


def on(route: str, reply: Reply) -> Callable[[Asked], Reply | None]:
    return lambda asked: reply if asked.path.endswith(f"mlflow{route}") else None


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_readings(server: Standin, small: SmallMlflow, way: str):
    """Out of order, repeated, restarted and not finite; with errors and a proxy beside them, and without."""
    odd = [(10, 0.5, 5), (20, math.nan, 6), (20, 0.25, 6), (5, 0.75, 7), (10, 0.5, 8), (-3, -1.0, 1)]
    small.add("odd", m=odd, m_stderr=[(10, 0.1, 5), (20, 0.2, 6)], reward=rising(3))
    small.add("plain", m=rising(2_400))
    small.add("long", m=rising(2_600))
    small.add("none")
    asked = [RunQuery(run_id, "m", "reward") for run_id in (*small.runs, "unknown")]
    expected = source_of(server, WAYS["run by run"]).read(asked)
    found = source_of(server, WAYS[way]).read(asked)
    assert {query: repr(each) for query, each in found.items()} == {q: repr(each) for q, each in expected.items()}
    assert lengths(found) == {"odd": 6, "plain": 2_400, "long": 2_600, "none": 0, "unknown": "Rejected"}
    errors = [each.stderr for each in found[asked[0]].points]  # type: ignore[union-attr]
    assert errors == [None, 0.1, 0.2, 0.2, None, 0.1]


def test_a_hundred_known_runs_cost_two_calls(server: Standin, small: SmallMlflow):
    """One asks which of them were deleted, one brings the points."""
    for number in range(100):
        small.add(f"r{number:03}", m=rising(50))
    source = source_of(server)
    source.read(queries(small))
    source.read(queries(small))
    small.calls.clear()
    assert set(lengths(source.read(queries(small))).values()) == {50}
    assert small.calls == ["/runs/search", BULK]


@pytest.mark.parametrize("sizes", [(9_000, 9_000, 9_000), (MOST_ROWS,), (5, MOST_ROWS + 5, 5), (24_000, 1_000)])
def test_what_may_have_been_cut_is_never_taken_for_whole(server: Standin, small: SmallMlflow, sizes: tuple[int, ...]):
    """An answer as long as the limit lacks the runs that come last in it, without a word."""
    for number, size in enumerate(sizes):
        small.add(f"r{number}", m=rising(size))
    source = source_of(server, WAYS["bulk history"])
    for _ in range(2):
        assert list(lengths(source.read(queries(small))).values()) == list(sizes)


def test_once_its_size_is_known_a_large_run_crowds_out_nobody(server: Standin, small: SmallMlflow):
    for number in range(60):
        small.add(f"r{number:02}", m=rising(700))
    small.add("x", m=rising(MOST_ROWS))
    source = source_of(server)
    source.read(queries(small))
    small.calls.clear()
    source.read(queries(small))
    assert small.calls.count(BULK) == 3
    assert small.calls.count(HISTORY) == 3


def test_a_run_past_the_caps_is_refused_and_its_neighbour_read(server: Standin, small: SmallMlflow):
    small.add("calm", m=rising(300))
    small.add("flood", m=rising(301))
    for ways in WAYS.values():
        readings = source_of(server, ways, Caps(points=300)).read(queries(small))
        assert lengths(readings) == {"calm": 300, "flood": "TooMuch"}


FAULTS = {
    "404": raw(b"<html>", 404),
    "501": raw(b"", 501),
    "500": raw(b"", 500),
    "405": plain({"error_code": "ENDPOINT_NOT_FOUND"}, 405),
    "403": raw(b"", 403),
    "half": standin.half,
    "html": raw(b"<html>Log in</html>"),
    "strangers": plain({"metrics": [{"key": "m", "run_id": "another", "step": 1, "value": 1, "timestamp": 1}]}),
    "shapeless": plain({"metrics": [{"key": "m", "run_id": "a", "step": "x"}]}),
    "another": plain({"status": "ok"}),
    "hang": standin.hang,
}


@pytest.mark.parametrize("fault", standin.each(FAULTS))
@pytest.mark.parametrize("broken", [(BULK,), (BULK, INTERVAL)])
def test_a_way_that_fails_is_left_for_the_next_one(
    server: Standin, small: SmallMlflow, fault: str, broken: tuple[str, ...]
):
    small.add("a", m=rising(3))
    small.add("b", m=rising(4))
    small.trouble = lambda asked: next((r for route in broken if (r := on(route, FAULTS[fault])(asked))), None)
    source = source_of(server, limit_s=limit_for(fault))
    assert lengths(source.read(queries(small))) == {"a": 3, "b": 4}
    small.calls.clear()
    assert lengths(source.read(queries(small))) == {"a": 3, "b": 4}
    assert not set(broken) & set(small.calls)


@dataclass
class Hand:
    """A clock moved by hand."""

    at_s: float = 0.0

    def __call__(self) -> float:
        return self.at_s


def test_a_way_is_tried_again_later_and_taken_up_again(server: Standin, small: SmallMlflow):
    small.add("a", m=rising(3))
    small.trouble = on(BULK, raw(b"", 501))
    clock, http = Hand(), Http(Server(server.uri, timeout_s=PATIENT_S))
    rungs = [Rung(BulkHistory(), Footing(clock)), Rung(BulkInterval(), Footing(clock))]
    ladder = Ladder(rungs, Caps(), workers=4)

    def routes() -> list[str]:
        small.calls.clear()
        assert [len(points) for points in ladder.read(Pass(http, 4, 60), queries(small)).values()] == [3]  # type: ignore[arg-type]
        return small.calls

    assert routes() == [BULK, INTERVAL]
    assert routes() == [INTERVAL]
    clock.at_s += 61
    assert routes() == [BULK, INTERVAL]
    clock.at_s += 61
    assert routes() == [INTERVAL]
    small.trouble = lambda asked: None
    clock.at_s += 61
    assert routes() == [BULK]
    http.close()


@pytest.mark.parametrize("fault", standin.each(["500", "half", "shapeless", "hang"]))
def test_a_run_that_breaks_bulk_answers_is_read_alone_and_the_others_in_bulk(
    server: Standin, small: SmallMlflow, fault: str
):
    """A hundred and fifty runs, one of which the server cannot answer for in any way."""
    for number in range(150):
        small.add(f"r{number:03}", m=rising(3))

    def trouble(asked: Asked) -> Reply | None:
        named = asked.several("run_id") + asked.several("run_ids")
        return FAULTS[fault] if "metric_key" in asked.query and "r120" in named else None

    small.trouble = trouble
    source = source_of(server, limit_s=limit_for(fault))
    for _ in range(2):
        found = lengths(source.read(queries(small)))
        assert isinstance(found.pop("r120"), str)
        assert set(found.values()) == {3}
    small.calls.clear()
    source.read(queries(small))
    assert small.calls.count(BULK) == 2
    # What holds up a call of its own is quarantined, too, and asked for again after a minute.
    assert small.calls.count(HISTORY) == (0 if fault == "hang" else 1)


@pytest.mark.parametrize("fault", standin.each([raw(b"", 429), raw(b"", 503), standin.hang]))
def test_after_an_outage_nothing_is_held_against_anybody(server: Standin, small: SmallMlflow, fault: Reply):
    for number in range(20):
        small.add(f"r{number:02}", m=rising(3))
    source = source_of(server, limit_s=limit_for(fault))
    source.read(queries(small))
    small.trouble = lambda asked: fault
    answers = source.read(queries(small)).values()
    assert all(isinstance(each, Unavailable) for each in answers)
    small.trouble = lambda asked: None
    small.calls.clear()
    assert set(lengths(source.read(queries(small))).values()) == {3}
    assert set(small.calls) == {"/runs/search", BULK}


def test_a_server_that_asks_for_patience_in_bulk_is_not_asked_run_by_run(server: Standin, small: SmallMlflow):
    for number in range(300):
        small.add(f"r{number:03}", m=rising(3))
    small.trouble = on(BULK, raw(b"", 429))
    answers = source_of(server).read(queries(small)).values()
    assert all(isinstance(each, Unavailable) for each in answers)
    assert len(small.calls) <= 6


def test_a_proxy_that_cannot_be_read_costs_the_alarm_alone(server: Standin, small: SmallMlflow):
    small.add("a", m=rising(3), reward=rising(3))
    small.trouble = lambda asked: raw(b"", 500) if asked.query.get("metric_key") == "reward" else None
    (reading,) = source_of(server).read([RunQuery("a", "m", "reward")]).values()
    assert isinstance(reading, RunReading)
    assert (len(reading.points), reading.proxy) == (3, ())


def test_errors_that_cannot_be_read_cost_the_reading(server: Standin, small: SmallMlflow):
    small.add("a", m=rising(3), m_stderr=rising(3))
    small.trouble = lambda asked: raw(b"", 500) if asked.query.get("metric_key") == "m_stderr" else None
    (reading,) = source_of(server).read([RunQuery("a", "m")]).values()
    assert isinstance(reading, EvalstopError)


def test_the_check_names_the_way_that_works(server: Standin, small: SmallMlflow):
    assert source_of(server).ping().endswith("bulk history")
    small.trouble = on(BULK, raw(b"", 404))
    assert source_of(server).ping().endswith("bulk interval")
    unknown = plain({"error_code": "RESOURCE_DOES_NOT_EXIST"}, 404)
    small.trouble = lambda asked: on(BULK, raw(b"", 404))(asked) or on(INTERVAL, unknown)(asked)
    assert source_of(server).ping().endswith("bulk interval")
    small.trouble = lambda asked: on(BULK, raw(b"", 404))(asked) or on(INTERVAL, raw(b"", 404))(asked)
    assert source_of(server).ping().endswith("a call for each run")


def test_a_metric_that_no_run_can_have_is_refused_without_a_call(server: Standin, small: SmallMlflow):
    small.add("a", m=rising(3))
    answer = source_of(server).read([RunQuery("a", "x" * 251)])
    assert isinstance(next(iter(answer.values())), Rejected)
    assert not {BULK, INTERVAL, HISTORY} & set(small.calls)


@pytest.mark.parametrize("fault", ["500", "half", "shapeless"])
def test_a_bulk_answer_that_breaks_once_is_asked_for_again(server: Standin, small: SmallMlflow, fault: str):
    """Or else a connection that drops by chance would have a whole site read run by run."""
    for number in range(250):
        small.add(f"r{number:03}", m=rising(3))
    source = source_of(server)
    source.read(queries(small))
    broken = iter([on(BULK, FAULTS[fault])])
    small.trouble = lambda asked: next(broken, lambda other: None)(asked) if asked.path.endswith(BULK) else None
    small.calls.clear()
    assert set(lengths(source.read(queries(small))).values()) == {3}
    assert small.calls.count(BULK) == 4
    assert HISTORY not in small.calls


def test_a_way_that_fails_at_many_chunks_at_once_has_failed_once_and_says_so_once(
    server: Standin, small: SmallMlflow, caplog: pytest.LogCaptureFixture
):
    """Counted chunk by chunk, one bad moment of a large site would rest the way for an hour."""
    for number in range(700):
        small.add(f"r{number:03}", m=rising(1))
    clock, http = Hand(), Http(Server(server.uri, timeout_s=PATIENT_S))
    ladder = Ladder([Rung(BulkHistory(), Footing(clock))], Caps(), workers=4)

    def routes() -> set[str]:
        small.calls.clear()
        ladder.read(Pass(http, 4, 600), queries(small))
        return set(small.calls)

    assert routes() == {BULK}
    small.trouble = on(BULK, raw(b"<html>\x1b[31m", 500))
    assert routes() == {BULK, HISTORY}
    assert routes() == {HISTORY}
    small.trouble = lambda asked: None
    clock.at_s += 61
    assert routes() == {BULK}
    (told,) = [each.getMessage() for each in caplog.records if each.name == "evalstopd.mlflow"]
    assert told.startswith("bulk history is left for a while")
    assert "HTTP 500" in told
    http.close()
