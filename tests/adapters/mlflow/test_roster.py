"""Facts of runs between passes: remembered while they stand still, never where it matters that they are new."""

from collections.abc import Iterator

import pytest

from evalstopd.adapters.mlflow.footing import Footing
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.problems import Busy
from evalstopd.adapters.mlflow.roster import Roster
from evalstopd.adapters.mlflow.server import Server
from evalstopd.core.binding import RunFacts
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Standin, raw

SEARCH, GET = "/runs/search", "/runs/get"


class Desk:
    """A roster over a small MLflow, with a clock moved by hand."""

    def __init__(self, uri: str, small: SmallMlflow) -> None:
        self.small = small
        self.at_s = 0.0
        self.http = Http(Server(uri, timeout_s=60))
        self.roster = Roster(Footing(lambda: self.at_s), 4, lambda: self.at_s)

    def read(self, *anew: str, metric: str = "m") -> dict[str, object]:
        self.small.calls.clear()
        needs = {run_id: {metric} for run_id in self.small.runs}
        return dict(self.roster.read(Pass(self.http, 4, 60), needs, anew))

    def tag_of(self, answers: dict[str, object], run_id: str = "r0") -> str:
        facts = answers[run_id]
        assert isinstance(facts, RunFacts)
        return facts.tags.get("note", "")


@pytest.fixture
def desk() -> Iterator[Desk]:
    small = SmallMlflow()
    for number in range(10):
        small.add(f"r{number}", m=[(1, 0.5, 1)])
    with Standin(small) as server:
        desk = Desk(server.uri, small)
        yield desk
        desk.http.close()


def stand_still(desk: Desk, seconds: float) -> None:
    desk.read()
    desk.at_s += seconds
    desk.read()


def test_what_stood_still_for_a_while_is_kept_for_as_long_again(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r0"].tags["note"] = "new"
    desk.at_s += 600
    assert desk.tag_of(desk.read()) == ""
    desk.at_s += 1
    assert desk.tag_of(desk.read()) == "new"


def test_it_is_kept_for_two_hours_at_most(desk: Desk):
    stand_still(desk, 90_000)
    desk.small.runs["r0"].tags["note"] = "new"
    desk.at_s += 7_201
    assert desk.tag_of(desk.read()) == "new"


def test_what_changed_is_read_again_at_once(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r0"].tags["note"] = "first"
    desk.at_s += 601
    desk.read()
    desk.small.runs["r0"].tags["note"] = "second"
    desk.at_s += 1
    assert desk.tag_of(desk.read()) == "second"


def test_a_deleted_run_is_seen_in_the_next_pass(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r3"].deleted = True
    answers = desk.read()
    assert [run_id for run_id, facts in answers.items() if isinstance(facts, RunFacts) and facts.deleted] == ["r3"]
    assert desk.small.calls == [SEARCH]


def test_who_must_be_known_as_they_are_now_are_read_now(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r0"].tags["note"] = "new"
    assert desk.tag_of(desk.read("r0")) == "new"


def test_a_run_that_was_written_to_is_read_anew(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r0"].tags["note"] = "ours"
    desk.roster.forget("r0")
    assert desk.tag_of(desk.read()) == "ours"


def test_facts_that_do_not_name_the_metric_yet_are_read_again(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r0"].rows["late"] = [(1, 0.5, 1)]
    facts = desk.read(metric="late")["r0"]
    assert isinstance(facts, RunFacts)
    assert "late" in facts.metrics


def test_without_searches_nothing_remembered_is_trusted(desk: Desk):
    stand_still(desk, 600)
    desk.small.runs["r0"].deleted = True
    desk.small.trouble = lambda asked: raw(b"", 500) if asked.path.endswith(SEARCH) else None
    facts = desk.read()["r0"]
    assert isinstance(facts, RunFacts)
    assert facts.deleted
    assert desk.small.calls.count(GET) == 10


def test_while_searches_are_put_off_nothing_remembered_is_trusted_and_nobody_is_asked_for_alone(desk: Desk):
    """Ten runs asked for alone would be ten questions more to a server that asks for fewer."""
    stand_still(desk, 600)
    desk.small.trouble = lambda asked: raw(b"", 429, "Retry-After: 3600") if asked.path.endswith(SEARCH) else None
    assert all(isinstance(each, Busy) for each in desk.read().values())
    assert desk.small.calls == [SEARCH]


def test_what_a_search_does_not_show_is_asked_for_alone(desk: Desk):
    """Without the right to an experiment a search shows nothing of it, with a 200."""
    desk.small.trouble = lambda asked: raw(b"{}") if asked.path.endswith(SEARCH) else None
    assert all(isinstance(facts, RunFacts) for facts in desk.read().values())
    desk.at_s += 600
    desk.read()
    desk.small.runs["r0"].deleted = True
    facts = desk.read()["r0"]
    assert isinstance(facts, RunFacts)
    assert facts.deleted


def test_a_few_unfamiliar_runs_cost_no_list_of_experiments(desk: Desk):
    for number in range(4, 10):
        del desk.small.runs[f"r{number}"]
    desk.read()
    assert desk.small.calls == [GET] * 4


def test_a_search_that_breaks_by_chance_is_made_again_and_costs_one_call(desk: Desk) -> None:
    """Real servers answer some searches with HTTP 500; a site of thousands must not be read run by run for it."""
    stand_still(desk, 600)
    left = [raw(b"", 500)]
    desk.small.trouble = lambda asked: left.pop() if left and asked.path.endswith(SEARCH) else None
    assert all(isinstance(facts, RunFacts) for facts in desk.read().values())
    assert desk.small.calls == [SEARCH, SEARCH]
    desk.read()
    assert desk.small.calls == [SEARCH]


def test_one_search_that_never_works_costs_its_own_runs_alone_and_searching_goes_on(desk: Desk) -> None:
    for number in range(10, 250):
        desk.small.add(f"r{number}", m=[(1, 0.5, 1)])
    stand_still(desk, 600)
    desk.small.trouble = lambda asked: (
        raw(b"", 500) if asked.path.endswith(SEARCH) and b"'r120'" in asked.body else None
    )
    for _ in range(2):
        assert sum(isinstance(facts, RunFacts) for facts in desk.read().values()) == 250
        assert desk.small.calls.count(GET) == 100
        desk.at_s += 1


def test_where_no_search_works_it_is_left_for_a_while_and_the_log_says_why(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    stand_still(desk, 600)
    desk.small.trouble = lambda asked: raw(b"", 500) if asked.path.endswith(SEARCH) else None
    desk.read()
    (told,) = caplog.messages
    assert told.startswith("searching is left for a while, runs are asked for one by one: ")
    assert told.endswith("HTTP 500")
    desk.read()
    assert SEARCH not in desk.small.calls
    desk.at_s += 61
    desk.small.trouble = lambda asked: None
    desk.read()
    assert SEARCH in desk.small.calls
    assert GET not in desk.small.calls
