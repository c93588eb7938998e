"""The rung that reads MLflow's own database, where the site gives an address for it: a hundred times cheaper.

Facts still come from the server, so a run that it does not show us is not read here either.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from evalstopd.adapters.mlflow.bulk import Haul
from evalstopd.adapters.mlflow.http import Asks
from evalstopd.adapters.mlflow.problems import one_line
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError

_log = logging.getLogger("evalstopd.mlflow")
_MOST_ROWS = 200_000


class Tables(Protocol):
    """The tables of the tracker."""

    def series(self, metric: str, run_ids: Sequence[str], most: int) -> Sequence[Point]:
        """Return the points that these runs have of a metric, `most` at most, in no order. Raises Unavailable."""


class DatabaseRoute:
    """A BulkRoute over the tracker's tables; what is wrong with it is logged once, as long as it stays the same."""

    name = "its database"
    budget = 100_000

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._said = ""

    def ask(self, http: Asks, metric: str, run_ids: Sequence[str]) -> Haul:
        """Return the points; an answer as long as the limit may lack any run's. Raises Unavailable."""
        del http
        try:
            points = self._tables.series(metric, run_ids, _MOST_ROWS)
        except EvalstopError as error:
            self._say(f"{one_line(error)}: evals are read from the server instead")
            raise
        self._say("")
        if len(points) >= _MOST_ROWS:
            return Haul({}, frozenset(run_ids))
        found: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
        for point in points:
            found[point.run_id].append(point)
        return Haul({run_id: tuple(own) for run_id, own in found.items()})

    def _say(self, what: str) -> None:
        if what and what != self._said:
            _log.warning("%s", what)
        self._said = what
