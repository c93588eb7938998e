"""The two routes that give one metric of many runs in one answer: not documented, and each cuts in silence.

`get-history-bulk` (the server's own pages use it) gives 25,000 rows in all, the rest vanishes.
`get-history-bulk-interval` samples a run with more than 2,500 rows. What may have been cut is never taken for whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Answer, Asks, Params
from evalstopd.adapters.mlflow.points import point_of
from evalstopd.adapters.mlflow.refusals import AJAX
from evalstopd.core.model import Point
from evalstopd.errors import Unavailable

MOST_RUNS = 100
_MOST_ROWS = 25_000
_MOST_SAMPLED = 2_500
# Older servers sample by distinct steps, in a way of their own: near the limit nothing is certain.
_SURELY_WHOLE = 2_000


@dataclass(frozen=True, slots=True)
class Haul:
    """What one answer has: each run's points, and the runs whose points may not be all there."""

    whole: Mapping[str, tuple[Point, ...]]
    cut: frozenset[str] = frozenset()


class BulkRoute(Protocol):
    """One metric of at most MOST_RUNS runs in one call."""

    name: str
    budget: int
    """Rows that one call may be expected to bring."""

    def ask(self, http: Asks, metric: str, run_ids: Sequence[str]) -> Haul:
        """Return the points of these runs, none for a run it does not know. Raises Unavailable or Rejected."""


class BulkHistory:
    """`get-history-bulk`."""

    name = "bulk history"
    budget = 20_000

    def ask(self, http: Asks, metric: str, run_ids: Sequence[str]) -> Haul:
        """Return the points; an answer as long as the limit may lack any run's."""
        params: Params = {"run_id": list(run_ids), "metric_key": metric, "max_results": str(_MOST_ROWS)}
        answer = http.get(f"{AJAX}/metrics/get-history-bulk", params)
        rows = _rows(answer, metric, run_ids)
        if sum(map(len, rows.values())) < _MOST_ROWS and _count(answer) < _MOST_ROWS:
            return Haul(rows)
        return Haul({}, frozenset(run_ids))


class BulkInterval:
    """`get-history-bulk-interval` over all steps: from the last known step on, it would miss what comes late."""

    name = "bulk interval"
    budget = 100_000

    def ask(self, http: Asks, metric: str, run_ids: Sequence[str]) -> Haul:
        """Return the points; a run near the limit may have been sampled."""
        params: Params = {"run_ids": list(run_ids), "metric_key": metric, "max_results": str(_MOST_SAMPLED)}
        rows = _rows(http.get("/metrics/get-history-bulk-interval", params), metric, run_ids)
        cut = frozenset(run_id for run_id, points in rows.items() if len(points) > _SURELY_WHOLE)
        if len(run_ids) > 1 and len({each.step for points in rows.values() for each in points}) > _SURELY_WHOLE:
            cut = frozenset(run_ids)  # MLflow 2 samples the steps of all runs of a call together
        return Haul({run_id: points for run_id, points in rows.items() if run_id not in cut}, cut)


def _count(answer: Answer) -> int:
    return len(fields.items(answer.body.get("metrics"), "list of metrics"))


def _rows(answer: Answer, metric: str, run_ids: Sequence[str]) -> dict[str, tuple[Point, ...]]:
    # An answer without the list is how protobuf writes an empty one; one that was asked of another thing has others.
    if answer.body.keys() - {"metrics"}:
        raise Unavailable("MLflow's answer is not that of the bulk route")
    rows: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
    for item in fields.items(answer.body.get("metrics"), "list of metrics"):
        row = fields.mapping(item, "metric")
        run_id = fields.text(row.get("run_id"), "run id")
        found = rows.get(run_id)
        if found is None:
            raise Unavailable("MLflow's answer has points of a run that was not asked for")
        # Databases that compare without regard to case send the points of `Loss` for `loss` as well.
        if fields.text(row.get("key"), "metric name") == metric:
            found.append(point_of(row, run_id))
    return {run_id: tuple(points) for run_id, points in rows.items()}
