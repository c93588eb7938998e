"""Facts from answers of any shape, and writes to a server that says yes and does otherwise."""

import json
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.mlflow import runs
from evalstopd.adapters.mlflow.http import Answer, Http
from evalstopd.adapters.mlflow.problems import TooMuch
from evalstopd.adapters.mlflow.server import Server
from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from tests.adapters.mlflow.standin import Asked, Reply, Standin, plain, run_json
from tests.adapters.mlflow.test_points import anything, outcome_of
from tests.contracts.metrics_contract import is_one_line


class Says:
    """Stands where the client does and gives one answer."""

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body

    def get(self, path: str, params: Mapping[str, str]) -> Answer:
        return Answer(self._body, 1)


def facts_with(tags: object = None, params: object = None, **info: object) -> RunFacts:
    body = run_json("r", **info)
    body["run"]["data"] = {"tags": tags, "params": params}  # type: ignore[index]
    return runs.facts(Says(body), "r")


def pair(key: object, value: object) -> dict[str, object]:
    return {"key": key, "value": value}


def test_the_user_is_the_servers_own_word_before_the_tag():
    assert facts_with([pair("mlflow.user", "eve")], user_id="alice").user == "alice"
    assert facts_with([pair("mlflow.user", "eve")]).user == "eve"


def test_absent_lists_and_values_are_empty_as_protobuf_leaves_them_out():
    facts = facts_with(None, [{"key": "output_dir"}])
    assert (facts.tags, facts.params) == ({}, {"output_dir": ""})


def test_a_value_beyond_its_cap_counts_as_not_there():
    facts = facts_with([pair("long", "x" * 65_537), pair("fits", "x" * 65_536)])
    assert list(facts.tags) == ["fits"]


def test_a_flood_of_parameters_costs_that_run_only():
    with pytest.raises(TooMuch, match="too many parameters"):
        facts_with(None, [pair(str(number), "") for number in range(5_001)])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"run": None},
        {"run": {"info": []}},
        run_json("another"),
        run_json("r", status=None),
        run_json("r", status=3),
        run_json("r", lifecycle_stage=""),
        run_json("r", user_id=["x"]),
    ],
    ids=repr,
)
def test_an_answer_without_the_run_is_unavailable(body: Mapping[str, object]):
    with pytest.raises(Unavailable):
        runs.facts(Says(body), "r")


@pytest.mark.parametrize("tags", ["x", [1], [pair(1, "x")], [pair("", "x")], [pair("k", 1)], [pair("k", "a")] * 2])
def test_tags_of_the_wrong_shape_are_unavailable(tags: object):
    with pytest.raises(Unavailable):
        facts_with(tags)


infos = st.fixed_dictionaries(
    {"run_id": st.just("r") | anything},
    optional={"status": anything, "lifecycle_stage": anything, "user_id": anything},
)
lists = st.lists(st.fixed_dictionaries({}, optional={"key": anything, "value": anything}) | anything, max_size=3)
datas = st.fixed_dictionaries({}, optional={"tags": lists | anything, "params": lists | anything})


@given(st.fixed_dictionaries({"info": infos | anything, "data": datas | anything}) | anything)
def test_no_json_makes_it_raise_anything_of_its_own(run: object):
    outcome = outcome_of(lambda: runs.facts(Says({"run": run}), "r"))
    assert is_one_line(outcome) if isinstance(outcome, EvalstopError) else outcome.run_id == "r"


class Liar:
    """An MLflow with one run that takes every write with a 200, and keeps of it only what `keeps` lets through."""

    def __init__(self, keeps: str) -> None:
        self.keeps = keeps
        self.tags: dict[str, str] = {}
        self.status = "RUNNING"

    def __call__(self, asked: Asked) -> Reply:
        body = json.loads(asked.body or b"{}")
        for tag in body.get("tags", ()):
            self._tag(tag["key"], tag["value"])
        if "status" in body and self.keeps != "nothing":
            self.status = body["status"] if self.keeps == "all" else "FINISHED"
        if asked.method == "POST":
            return plain({})
        answer = run_json("r", status=self.status)
        answer["run"]["data"]["tags"] = [pair(*each) for each in self.tags.items()]  # type: ignore[index]
        return plain(answer)

    def _tag(self, key: str, value: str) -> None:
        if self.keeps != "nothing":
            self.tags[key] = value if self.keeps == "all" else value[:3]


@pytest.fixture
def liar(request: pytest.FixtureRequest) -> Iterator[Http]:
    with Standin(Liar(request.param)) as server:
        http = Http(Server(server.uri))
        yield http
        http.close()


@pytest.mark.parametrize("liar", ["nothing"], indirect=True)
def test_a_write_that_did_not_take_is_unavailable(liar: Http):
    with pytest.raises(Unavailable, match="does not show it"):
        runs.set_tags(liar, "r", {"evalstop.state": "stopped"})
    with pytest.raises(Unavailable, match="still shows RUNNING"):
        runs.mark_killed(liar, "r", 1)


@pytest.mark.parametrize("liar", ["some"], indirect=True)
def test_a_write_that_took_otherwise_is_told(liar: Http):
    """Another text in a tag is Rejected; a status that the job itself set meanwhile is simply the answer."""
    with pytest.raises(Rejected, match="another text"):
        runs.set_tags(liar, "r", {"evalstop.state": "stopped"})
    assert runs.mark_killed(liar, "r", 1) == "FINISHED"


@pytest.mark.parametrize("liar", ["all"], indirect=True)
def test_a_text_that_cannot_be_sent_or_is_too_long_is_stored_as_fit_says(liar: Http):
    runs.set_tags(liar, "r", {"a": "x\udcffy", "b": "é" * 4_000})
    assert runs.facts(liar, "r").tags == {"a": "x?y", "b": runs.fit("é" * 4_000)}


@given(st.text())
def test_what_fits_is_short_whole_and_fits_again(value: str):
    once = runs.fit(value * 40)
    assert len(once.encode()) <= runs.TAG_BYTES
    assert runs.fit(once) == once
