"""What logged models tell of a run's values: whole, or not at all, and at the cost of that run alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.mlflow.http import Answer, Params
from evalstopd.adapters.mlflow.labels import Answered, Labels
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.problems import UNKNOWN_RUN, NotAsked, Silent, TooLong, TooMuch, Unreachable
from evalstopd.adapters.mlflow.readings import Whole
from evalstopd.core.binding import RunFacts
from evalstopd.core.datasets import Dataset, Told
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.ports import RunQuery

CHOSEN, UNCHOSEN = RunQuery("r", "m", dataset="val"), RunQuery("r", "m")
FACTS = RunFacts("r", "RUNNING", deleted=False, user="", tags={}, params={}, metrics=frozenset({"m", "m_stderr"}))
VAL = Dataset("val", "aa")
SEARCH, RUN = "/logged-models/search", "/runs/get"
Reply = Mapping[str, object] | EvalstopError


class Server:
    """Stands where the client does; `pages` are what searches answer, one after the other, the last one for ever."""

    def __init__(self, *pages: Reply, run: Reply | None = None, size: int = 10, **alone: Reply) -> None:
        self.pages = list(pages)
        self.run = run if run is not None else run_of(outputs=["m-1"])
        self.size = size
        self.alone = alone
        self.asked: list[str] = []

    def get(self, path: str, params: Params) -> Answer:
        self.asked.append(path)
        if path == RUN:
            return self._answer(self.run)
        return self._answer(self.alone.get(path.rpartition("/")[2], Rejected(UNKNOWN_RUN)))

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        assert (path, body["filter"], body["experiment_ids"]) == (SEARCH, "source_run_id = 'r'", ["7"])
        self.asked.append(f"{path} {body.get('page_token', '')}".strip())
        return self._answer(self.pages.pop(0) if len(self.pages) > 1 else self.pages[0])

    def _answer(self, reply: Reply) -> Answer:
        if isinstance(reply, EvalstopError):
            raise reply
        return Answer(reply, self.size)


def run_of(outputs: list[str] | None = None, inputs: list[str] | None = None) -> dict[str, object]:
    return {
        "run": {
            "info": {"run_id": "r", "experiment_id": "7"},
            "outputs": {"model_outputs": [{"model_id": each, "step": "1"} for each in outputs or []]},
            "inputs": {"model_inputs": [{"model_id": each} for each in inputs or []]},
        }
    }


def metric(step: int, value: object = 0.5, **changes: object) -> dict[str, object]:
    usual = {"key": "m", "step": step, "value": value, "timestamp": 10 * step, "run_id": "r"}
    return {**usual, "dataset_name": "val", "dataset_digest": "aa", **changes}


def model(model_id: str, *metrics: object) -> dict[str, object]:
    return {"info": {"model_id": model_id, "source_run_id": "r"}, "data": {"metrics": list(metrics)}}


def page(*models: object, token: str = "") -> dict[str, object]:
    return {"models": list(models), **({"next_page_token": token} if token else {})}


def whole(*values: tuple[int, float]) -> Whole:
    """Return a run as it was read, with these values of the metric by step."""
    points = tuple(Point("r", step, value, 10 * step) for step, value in values)
    return Whole(FACTS, {RunQuery("r", "m"): points, RunQuery("r", "proxy"): ()})


def ask(server: Server, query: RunQuery = CHOSEN, caps: Caps | None = None) -> Answered:
    return Labels(1, caps or Caps()).told(server, {query: whole()})[query]


def steps(answer: Answered) -> list[int]:
    assert isinstance(answer, Told), answer
    return sorted(step for _, step, _, _ in answer.of)


def test_pages_are_followed_and_models_of_others_asked_for_alone():
    server = Server(
        page(model("m-1", metric(1)), token="t1"),
        page(model("m-2", metric(2), metric(3))),
        run=run_of(outputs=["m-1", "m-2"], inputs=["m-2", "theirs", "deleted"]),
        theirs={"model": model("theirs", metric(4), metric(5, run_id="another"))},
    )
    assert steps(ask(server)) == [1, 2, 3, 4]
    assert server.asked == [RUN, SEARCH, f"{SEARCH} t1", "/logged-models/theirs", "/logged-models/deleted"]


def test_while_no_value_has_come_nothing_is_asked_again():
    """As of a job with something open, which is read in each pass."""
    server, labels = Server(page(model("m-1", metric(1), metric(2)))), Labels(1, Caps())
    first = whole((1, 0.5), (2, 0.5))
    told = [labels.told(server, {CHOSEN: each})[CHOSEN] for each in (first, first, whole((1, 0.5)))]
    assert [steps(each) for each in told] == [[1, 2]] * 3
    assert server.asked == [RUN, SEARCH] * 2
    other = replace(CHOSEN, dataset="other", fresh=True)
    assert steps(labels.told(server, {other: whole((1, 0.5))})[other]) == [1, 2]
    assert server.asked == [RUN, SEARCH] * 3


def test_a_value_that_no_model_told_of_yet_is_asked_for_again():
    server, labels = Server(page(model("m-1", metric(1)))), Labels(1, Caps())
    for _ in range(2):
        labels.told(server, {CHOSEN: whole((1, 0.5), (2, 0.5))})
    assert server.asked == [RUN, SEARCH] * 2
    server.asked.clear()
    for _ in range(2):
        labels.told(server, {UNCHOSEN: whole((1, 0.5), (2, 0.5))})
    assert server.asked == [RUN, SEARCH]


def test_an_outage_is_not_remembered():
    server, labels = Server(Unreachable("gone"), page(model("m-1", metric(1)))), Labels(1, Caps())
    assert isinstance(labels.told(server, {CHOSEN: whole((1, 0.5))})[CHOSEN], Unreachable)
    assert steps(labels.told(server, {CHOSEN: whole((1, 0.5))})[CHOSEN]) == [1]


def test_what_is_remembered_of_all_runs_together_has_an_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evalstopd.adapters.mlflow.labels._MOST_REMEMBERED", 7)
    server, labels = Server(page(model("m-1", metric(1), metric(2)))), Labels(1, Caps())
    queries = [replace(CHOSEN, dataset=f"d{number}") for number in range(3)]
    labels.told(server, {query: whole((1, 0.5), (2, 0.5)) for query in queries})
    server.asked.clear()
    labels.told(server, {query: whole((1, 0.5), (2, 0.5)) for query in reversed(queries)})
    assert server.asked == [RUN, SEARCH]


def test_a_run_without_models_costs_one_small_question():
    """As every run of MLflow 2 is, which has no route for them."""
    for run in (run_of(), {"run": {"info": {"run_id": "r", "experiment_id": "7"}}}):
        server = Server(page(model("m-1", metric(1))), run=run)
        assert steps(ask(server)) == []
        assert server.asked == [RUN]


def test_where_nobody_chose_the_newest_models_alone_are_asked_for_names():
    server = Server(
        page(model("m-1", metric(1)), token="t1"), run=run_of(outputs=["m-1"], inputs=[f"x{n}" for n in range(300)])
    )
    assert steps(ask(server, UNCHOSEN)) == [1]
    assert server.asked == [RUN, SEARCH, "/logged-models/x0", "/logged-models/x1"]


@pytest.mark.parametrize(
    "other",
    [
        metric(1, run_id="another"),
        metric(1, key="other"),
        metric(1, dataset_name=None),
        metric(1, dataset_name="a\nb"),
        metric(1, dataset_name="n" * 201),
        metric(1, dataset_digest="a b"),
        {"key": "m", "value": 0.5, "run_id": "r"},
    ],
)
def test_what_is_of_another_run_or_metric_or_of_no_dataset_tells_nothing(other: Mapping[str, object]):
    answer = ask(Server(page(model("m-1", metric(2), other))))
    assert isinstance(answer, Told)
    assert answer.of == {("m", 2, 20, 0.5): {VAL}}


def test_what_is_logged_beside_the_metric_is_told_too():
    answer = ask(Server(page(model("m-1", metric(1), metric(1, 0.01, key="m_stderr")))))
    assert isinstance(answer, Told)
    assert {name for name, *_ in answer.of} == {"m", "m_stderr"}


def test_a_token_that_comes_again_is_unavailable():
    answer = ask(Server(page(token="t")))
    assert isinstance(answer, Unavailable)
    assert "again and again" in str(answer)


@pytest.mark.parametrize(
    "caps", [Caps(points=10), Caps(pages=3), Caps(size=25), Caps(seconds=-1)], ids=["points", "pages", "size", "time"]
)
def test_past_each_cap_it_is_too_much_for_that_run(caps: Caps):
    pages = [page(*(model(f"m-{n}", metric(9 * n + at)) for at in range(9)), token=f"t{n}") for n in range(100)]
    server = Server(*pages)
    assert isinstance(ask(server, caps=caps), TooMuch)
    assert len(server.asked) <= 5


def test_a_page_that_is_too_long_is_asked_for_in_halves_and_a_model_too_long_alone_is_too_much_for_that_run():
    halved = Server(TooLong("large"), TooLong("large"), page(model("m-1", metric(1), metric(2))))
    assert steps(ask(halved)) == [1, 2]
    assert halved.asked == [RUN, SEARCH, SEARCH, SEARCH]
    assert isinstance(ask(Server(TooLong("large"))), TooMuch)
    alone = Server(page(), run=run_of(inputs=["theirs"]), theirs=TooLong("large"))
    assert isinstance(ask(alone), TooMuch)
    assert isinstance(ask(Server(page(), run=TooLong("large"))), TooMuch)


def test_a_flood_of_models_of_others_is_too_much_before_any_is_asked_for():
    server = Server(page(), run=run_of(inputs=[f"x{number}" for number in range(51)]))
    assert isinstance(ask(server), TooMuch)
    assert server.asked == [RUN, SEARCH]


def test_an_id_that_no_model_has_is_never_part_of_an_address():
    server = Server(page(), run=run_of(inputs=["../../runs/get", "a b", "é"]))
    assert steps(ask(server)) == []
    assert server.asked == [RUN, SEARCH]


OUTAGES = (Unreachable("gone"), Silent("silent"), NotAsked("over"))


@pytest.mark.parametrize("error", OUTAGES)
@pytest.mark.parametrize("query", [CHOSEN, UNCHOSEN])
def test_an_outage_is_asked_again_whoever_chose(error: EvalstopError, query: RunQuery):
    for server in (Server(error), Server(page(), run=error)):
        assert ask(server, query) is error


@pytest.mark.parametrize("error", [Unavailable("HTTP 500"), TooMuch("too much")])
def test_other_trouble_ends_the_reading_only_where_a_dataset_was_chosen(error: EvalstopError):
    assert ask(Server(error), CHOSEN) is error
    assert ask(Server(error), UNCHOSEN) == f"they cannot be told apart: {error}"


def test_a_refusal_is_said_and_not_asked_again():
    for query in (CHOSEN, UNCHOSEN):
        answer = ask(Server(Rejected("no permission\x1b[31m")), query)
        assert answer == "they cannot be told apart: no permission\\x1b[31m"


def test_a_models_own_trouble_is_not_a_deleted_one():
    server = Server(page(), run=run_of(inputs=["x"]), x=Unavailable("HTTP 500"))
    assert isinstance(ask(server), Unavailable)


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "step", "value"]), inner),
    max_leaves=6,
)


@given(garbage, st.sampled_from(["models", "model", "info", "data", "metrics", "metric", "next_page_token", "run"]))
def test_an_answer_of_any_other_form_is_unavailable_or_tells_nothing_and_never_a_crash(value: object, where: str):
    whole = model("m-1", metric(1))
    answers: Mapping[str, Callable[[], Server]] = {
        "models": lambda: Server({"models": value}),
        "model": lambda: Server(page(value)),
        "info": lambda: Server(page({**whole, "info": value})),
        "data": lambda: Server(page({**whole, "data": value})),
        "metrics": lambda: Server(page({**whole, "data": {"metrics": value}})),
        "metric": lambda: Server(page(model("m-1", value))),
        "next_page_token": lambda: Server({"models": [], "next_page_token": value}),
        "run": lambda: Server(page(whole), run={"run": value}),
    }
    assert isinstance(ask(answers[where](), caps=Caps(pages=3)), (Told, Unavailable, TooMuch))
