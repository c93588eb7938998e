"""Reads every point of one metric of one run, page by page, up to caps that only that run can hit.

A point that is not what MLflow promises refuses the whole reading: a curve with a hole could show declines
that never were.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Answer, Asks
from evalstopd.adapters.mlflow.pages import walked
from evalstopd.adapters.mlflow.problems import TooMuch, about_one
from evalstopd.core.model import Point
from evalstopd.errors import Rejected
from evalstopd.ports import RunQuery

_LONGEST_METRIC = 250


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one run may cost: points in all, pages, bytes of all its answers, seconds; and points a page."""

    points: int = 100_000
    pages: int = 100
    size: int = 64 * 2**20
    seconds: float = 20.0
    page: int = 10_000


def history(http: Asks, query: RunQuery, caps: Caps) -> tuple[Point, ...]:
    """Return all points of the metric, by time; none for a metric (or a run!) that it does not know.

    Raises TooMuch past a cap, Rejected for a name that cannot be a metric's, else Unavailable.
    """
    if not is_metric(query.metric):
        raise Rejected("the metric's name is not one that MLflow could hold")
    points: list[Point] = []
    for page in _pages(http, query, caps):
        points += _points(page, query)
        if len(points) > caps.points:
            raise too_many(caps.points)
    return tuple(points)


def _pages(http: Asks, query: RunQuery, caps: Caps) -> Iterator[Answer]:
    end_at, count, size = time.monotonic() + caps.seconds, 0, 0

    def ask(token: str) -> Answer:
        nonlocal count, size
        if token:
            _within(caps, count, size, end_at)
        page = _page(http, query, token, caps)
        count, size = count + 1, size + page.size
        return page

    return walked(ask)


def _page(http: Asks, query: RunQuery, token: str, caps: Caps) -> Answer:
    # Without max_results some servers send everything at once, others nothing with a token that never ends.
    params = {"run_id": query.run_id, "metric_key": query.metric, "max_results": str(caps.page)}
    with about_one("the run has too many points of the metric"):
        return http.get("/metrics/get-history", {**params, "page_token": token} if token else params)


def _within(caps: Caps, count: int, size: int, end_at: float) -> None:
    if count >= caps.pages:
        raise TooMuch(f"the run has too many points of the metric (more than {caps.pages} pages)")
    if size > caps.size:
        raise TooMuch(f"the run has too many points of the metric (more than {caps.size} bytes)")
    if time.monotonic() > end_at:
        raise TooMuch(f"the run has too many points of the metric to be read within {caps.seconds:g} s")


def _points(page: Answer, query: RunQuery) -> Iterator[Point]:
    for item in fields.items(page.body.get("metrics"), "list of metrics"):
        metric = fields.mapping(item, "metric")
        # Databases that compare without regard to case send the points of `Loss` for `loss` as well.
        if fields.text(metric.get("key"), "metric name") == query.metric:
            yield point_of(metric, query.run_id)


def point_of(metric: Mapping[str, object], run_id: str) -> Point:
    """Return one value as MLflow's JSON has it. Raises Unavailable."""
    return Point(
        run_id=run_id,
        step=fields.int64(metric.get("step"), "step"),
        value=fields.number(metric.get("value"), "value"),
        timestamp_ms=fields.int64(metric.get("timestamp"), "timestamp"),
    )


def too_many(most: int) -> TooMuch:
    """Return why a run with more points of a metric than `most` is not read."""
    return TooMuch(f"the run has too many points of the metric (more than {most})")


def is_metric(name: str) -> bool:
    """Tell whether a name can be a metric's at all."""
    # A lone surrogate (how undecodable bytes of a comment arrive) cannot be sent at all.
    return 0 < len(name) <= _LONGEST_METRIC and not any("\ud800" <= letter <= "\udfff" for letter in name)
