"""Whose trouble is HTTP 403: one run's, or ours, where nothing that is asked for may be seen any more?"""

from collections.abc import Mapping

from evalstopd.adapters.mlflow import fields, runs
from evalstopd.adapters.mlflow.http import Asks
from evalstopd.adapters.mlflow.passes import tried
from evalstopd.adapters.mlflow.problems import Forbidden, LockedOut
from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError
from evalstopd.ports import RunQuery, RunReading

# Runs that could be read, one of which is asked for anew where a pass may see none of its own.
_MOST_WITNESSES = 4

Readings = Mapping[RunQuery, RunReading | EvalstopError]


class Rights:
    """Remembers a few runs that could be read: whether one still can tells a closed run from a right that is gone."""

    def __init__(self) -> None:
        self._witnesses: dict[str, None] = {}

    def judged(self, asks: Asks, readings: Readings) -> Readings:
        """Return a pass's readings; where it may see none of its runs, nor any other, that is no single run's fault."""
        read = {query.run_id for query, each in readings.items() if isinstance(each, RunReading)}
        closed = {query.run_id: each for query, each in readings.items() if isinstance(each, Forbidden)}
        if closed and not read and self._sees_nothing(asks, closed):
            return {query: _ours(each) if isinstance(each, Forbidden) else each for query, each in readings.items()}
        self._witnesses = dict.fromkeys([*read, *(each for each in self._witnesses if each not in closed)])
        while len(self._witnesses) > _MOST_WITNESSES:
            self._witnesses.popitem()
        return readings

    def _sees_nothing(self, asks: Asks, closed: Mapping[str, Forbidden]) -> bool:
        """Ask for what could be seen before; where nothing could, one run alone is closed if anything else is open."""
        for run_id in (each for each in self._witnesses if each not in closed):
            answer = _seen(asks, run_id)
            if isinstance(answer, RunFacts | Forbidden):
                return isinstance(answer, Forbidden)
        return len(closed) > 1 or tried(lambda: _shows_any_experiment(asks)) is not True


def _seen(asks: Asks, run_id: str) -> RunFacts | EvalstopError:
    return tried(lambda: runs.facts(asks, run_id))


def _shows_any_experiment(asks: Asks) -> bool:
    """Tell whether there is anything at all that we may see: the list has what we may, and is empty to who may not."""
    answer = asks.get("/experiments/search", {"max_results": "1"})
    return bool(fields.items(answer.body.get("experiments"), "experiments"))


def _ours(error: Forbidden) -> LockedOut:
    return LockedOut(f"{error} for any run that was asked for: look at the rights of our login")
