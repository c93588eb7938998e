"""Histories page by page: whole, or refused for that run alone."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.mlflow.http import Answer
from evalstopd.adapters.mlflow.points import Caps, history
from evalstopd.adapters.mlflow.problems import TooMuch
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.ports import RunQuery
from tests.adapters.mlflow.standin import point_json
from tests.contracts.metrics_contract import is_one_line

QUERY = RunQuery("r", "m")
T = TypeVar("T")


class Pages:
    """Stands where the client does and gives one prepared page after the other, the last one for ever."""

    def __init__(self, *pages: object, size: int = 10) -> None:
        self._pages = list(pages)
        self._size = size
        self.params: list[Mapping[str, str]] = []

    def get(self, path: str, params: Mapping[str, str]) -> Answer:
        assert path == "/metrics/get-history"
        self.params.append(params)
        page = self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]
        assert isinstance(page, dict)
        return Answer(page, self._size)


def outcome_of(ask: Callable[[], T]) -> T | EvalstopError:
    try:
        return ask()
    except EvalstopError as error:
        return error


def endless(points_a_page: int) -> Iterator[dict[str, object]]:
    for number in range(10_000):
        metrics = [point_json("m", step) for step in range(points_a_page)]
        yield {"metrics": metrics, "next_page_token": f"t{number}"}


def test_pages_are_followed_and_their_size_is_always_said():
    pages = Pages(
        {"metrics": [point_json("m", 1)], "next_page_token": "a/b+c="},
        {"next_page_token": "d"},
        {"metrics": [point_json("m", 2)], "next_page_token": ""},
    )
    assert [point.step for point in history(pages, QUERY, Caps(page=7))] == [1, 2]
    assert [params.get("page_token") for params in pages.params] == [None, "a/b+c=", "d"]
    assert {params["max_results"] for params in pages.params} == {"7"}


@pytest.mark.parametrize("loop", [["t"], ["t", "u", "t"]])
def test_a_token_that_comes_again_is_unavailable(loop: list[str]):
    pages = Pages(*({"metrics": [], "next_page_token": token} for token in loop))
    with pytest.raises(Unavailable, match="again and again"):
        history(pages, QUERY, Caps())


@pytest.mark.parametrize(
    ("caps", "points_a_page"),
    [(Caps(points=10), 4), (Caps(pages=5), 0), (Caps(size=45), 0), (Caps(seconds=-1), 0)],
)
def test_past_each_cap_the_run_has_too_many_points(caps: Caps, points_a_page: int):
    pages = Pages(*endless(points_a_page))
    with pytest.raises(TooMuch, match="too many points"):
        history(pages, QUERY, caps)
    assert len(pages.params) <= 5


def test_as_many_points_as_the_cap_are_fine():
    assert len(history(Pages({"metrics": [point_json("m", s) for s in range(10)]}), QUERY, Caps(points=10))) == 10


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (b'"NaN"', math.nan),
        (b"NaN", math.nan),
        (b'"Infinity"', math.inf),
        (b"-Infinity", -math.inf),
        (b"1e999", math.inf),
        (b"1.7976931348623157e308", 1.7976931348623157e308),
        (b"-1.7976931348623157e308", -1.7976931348623157e308),
        (b"3", 3.0),
        (b"-0.0", 0.0),
    ],
)
def test_every_spelling_of_a_number_is_a_float(sent: bytes, value: float):
    body = json.loads(b'{"metrics": [{"key": "m", "step": 1, "timestamp": 1, "value": ' + sent + b"}]}")
    (point,) = history(Pages(body), QUERY, Caps())
    assert point.value == value or (math.isnan(point.value) and math.isnan(value))


@pytest.mark.parametrize(
    "metric",
    [
        point_json("m", step=2**63),
        point_json("m", step=-(2**63) - 1),
        point_json("m", step=1.5),
        point_json("m", step=True),
        point_json("m", step="1e3"),
        point_json("m", step="٣"),
        point_json("m", step=None),
        point_json("m", timestamp=10**400),
        point_json("m", timestamp=[]),
        point_json("m", value="0.5"),
        point_json("m", value="nan"),
        point_json("m", value=10**400),
        point_json("m", value=False),
        point_json("m", value=None),
        {"key": 5},
        [],
        "x",
    ],
    ids=repr,
)
def test_one_unusable_point_refuses_the_whole_history(metric: object):
    """A curve with a hole could show two declines in a row where a rise was between them."""
    with pytest.raises(Unavailable, match="no usable"):
        history(Pages({"metrics": [point_json("m"), metric]}), QUERY, Caps())


def test_integers_at_the_ends_of_64_bits_and_in_strings_are_fine():
    ends = [point_json("m", 2**63 - 1), point_json("m", -(2**63)), point_json("m", "12", timestamp="-9")]
    points = history(Pages({"metrics": ends}), QUERY, Caps())
    assert [point.step for point in points] == [2**63 - 1, -(2**63), 12]


def test_points_of_another_metric_are_not_this_ones():
    """A database that ignores case answers with `M` when asked for `m`."""
    assert history(Pages({"metrics": [point_json("M"), point_json("m", 2)]}), QUERY, Caps()) == (Point("r", 2, 0.5, 1),)


@pytest.mark.parametrize("name", ["", "m" * 251, "\ud800"])
def test_a_name_that_cannot_be_a_metrics_is_not_even_asked_for(name: str):
    pages = Pages({})
    with pytest.raises(Rejected):
        history(pages, RunQuery("r", name), Caps())
    assert pages.params == []


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)
metrics = st.fixed_dictionaries(
    {}, optional={"key": st.just("m") | anything, "step": anything, "value": anything, "timestamp": anything}
)
bodies = st.fixed_dictionaries(
    {}, optional={"metrics": st.lists(metrics | anything, max_size=4) | anything, "next_page_token": anything}
)


@given(bodies)
def test_no_json_makes_it_raise_anything_of_its_own(body: dict[str, object]):
    outcome = outcome_of(lambda: history(Pages(body), QUERY, Caps(pages=3)))
    if isinstance(outcome, EvalstopError):
        assert is_one_line(outcome)
    else:
        assert all(type(point.step) is int and type(point.value) is float for point in outcome)
