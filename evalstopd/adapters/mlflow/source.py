"""MLflow as the loop knows it: many runs read side by side, each run's trouble its own; writes one at a time."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from evalstopd.adapters.mlflow import runs
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.points import Caps, history
from evalstopd.adapters.mlflow.problems import Silent, TooMuch
from evalstopd.errors import EvalstopError
from evalstopd.ports import Clock, RunQuery, RunReading

_MOST_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How a pass is walked: runs read at once, seconds for the whole pass."""

    workers: int = 4
    seconds: float = 60.0


class MlflowSource:
    """Reads runs (MetricsSource) and writes to them (RunWriter) over one HTTP client, which it does not own."""

    def __init__(self, http: Http, clock: Clock, caps: Caps | None = None, pace: Pace | None = None) -> None:
        self._http = http
        self._clock = clock
        self._caps = caps or Caps()
        self._pace = pace or Pace()
        self._heavy: frozenset[str] = frozenset()

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Return for each query its reading, or why there is none. Runs that were too heavy last time come last."""
        order = sorted(set(queries), key=lambda query: (query.run_id in self._heavy, query.run_id, query.metric))
        now = Pass(self._http, self._pace.workers, self._pace.seconds)
        with ThreadPoolExecutor(self._pace.workers, thread_name_prefix="mlflow-read") as pool:
            answers = pool.map(lambda query: self._reading(now, query), order)
            readings = dict(zip(order, answers, strict=True))
        self._remember(readings)
        return readings

    def ping(self) -> str:
        """Say that the API itself answers us (its health page would, even where we are not let in)."""
        # A search, for no one experiment need exist or be open to us: a tracker may have no default one.
        self._http.get("/experiments/search", {"max_results": "1"})
        return "its API answers"

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags on a run and read them back. Raises Unavailable or Rejected."""
        runs.set_tags(self._http, run_id, tags)

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING; return the status it has afterwards."""
        return runs.mark_killed(self._http, run_id, int(self._clock.now_s() * 1000))

    def _reading(self, now: Pass, query: RunQuery) -> RunReading | EvalstopError:
        try:
            # The facts first: the history of a run that is not there is an empty 200.
            return RunReading(runs.facts(now, query.run_id), history(now, query, self._caps))
        except EvalstopError as error:
            return error

    def _remember(self, readings: Mapping[RunQuery, RunReading | EvalstopError]) -> None:
        heavy = {query.run_id for query, reading in readings.items() if isinstance(reading, (Silent, TooMuch))}
        # A run that was not asked this time is still what it was.
        older = self._heavy - {query.run_id for query, reading in readings.items() if isinstance(reading, RunReading)}
        self._heavy = frozenset(heavy | older) if len(older) < _MOST_REMEMBERED else frozenset(heavy)
