"""Which readings were too heavy: they are asked last, and those past the caps ever more rarely, each for itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalstopd.adapters.mlflow.problems import Silent, TooMuch
from evalstopd.errors import EvalstopError
from evalstopd.ports import RunQuery, RunReading

_FIRST_WAIT_S = 60.0
_LONGEST_WAIT_S = 900.0
_MOST_REMEMBERED = 1_000

Readings = Mapping[RunQuery, RunReading | EvalstopError]


@dataclass(frozen=True, slots=True)
class _Term:
    """What is known of a heavy reading; without a wait it is only asked last."""

    error: EvalstopError
    wait_s: float = 0.0
    since_s: float = 0.0

    def holds(self, now_s: float) -> bool:
        """Tell whether it is not worth asking yet; a clock that was put back releases it."""
        return self.since_s <= now_s < self.since_s + self.wait_s


class Quarantine:
    """Remembers heavy readings, each by what was asked for: who asks too much of another's run costs himself alone.

    A cache only: who forgets it (a process just started) asks once more.
    """

    def __init__(self) -> None:
        self._terms: dict[tuple[str, str, str], _Term] = {}

    def is_heavy(self, query: RunQuery) -> bool:
        """Tell whether a reading was heavy last time."""
        return _of(query) in self._terms

    def held(self, queries: Iterable[RunQuery], now_s: float) -> Readings:
        """Return the readings that are not worth asking for yet, each with what was wrong with it."""
        known = ((query, self._terms.get(_of(query))) for query in queries)
        return {query: term.error for query, term in known if term is not None and term.holds(now_s)}

    def judged(self, readings: Readings, now_s: float) -> Readings:
        """Return a pass's readings, remembering the heavy ones.

        A run that keeps the server silent twice in a row, while others are read, is past the caps of time.
        """
        answered = any(isinstance(each, RunReading) for each in readings.values())
        found = {query: self._sentenced(query, each) if answered else each for query, each in readings.items()}
        for query, each in found.items():
            if isinstance(each, (TooMuch, Silent)):
                self._terms[_of(query)] = self._longer(query, each, now_s)
            elif isinstance(each, RunReading):
                self._terms.pop(_of(query), None)
        while len(self._terms) > _MOST_REMEMBERED:
            del self._terms[next(iter(self._terms))]
        return found

    def _longer(self, query: RunQuery, error: TooMuch | Silent, now_s: float) -> _Term:
        before = self._terms.pop(_of(query), _Term(error))
        if isinstance(error, Silent):
            return _Term(error)
        return _Term(error, min(2 * before.wait_s, _LONGEST_WAIT_S) or _FIRST_WAIT_S, now_s)

    def _sentenced(self, query: RunQuery, reading: RunReading | EvalstopError) -> RunReading | EvalstopError:
        before = self._terms.get(_of(query))
        if before is None or not isinstance(reading, Silent):
            return reading
        return TooMuch(f"the run could not be read twice in a row while others were ({reading})")


def _of(query: RunQuery) -> tuple[str, str, str]:
    return query.run_id, query.metric, query.dataset
