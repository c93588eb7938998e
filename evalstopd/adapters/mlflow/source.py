"""MLflow as the loop knows it: many runs read side by side, each run's trouble its own; writes one at a time."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from evalstopd.adapters.mlflow import finder, listing, runs
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.points import Caps, history
from evalstopd.adapters.mlflow.problems import one_line
from evalstopd.adapters.mlflow.quarantine import Quarantine
from evalstopd.core.binding import RunFacts
from evalstopd.core.logged import completed
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.ports import Clock, RunQuery, RunReading


@dataclass(frozen=True, slots=True)
class Pace:
    """How a pass is walked: runs read at once, seconds for the whole pass."""

    workers: int = 4
    seconds: float = 60.0


class MlflowSource:
    """MetricsSource, RunFinder, RunList and RunWriter over one HTTP client, which is not its own."""

    def __init__(self, http: Http, clock: Clock, caps: Caps | None = None, pace: Pace | None = None) -> None:
        self._http = http
        self._clock = clock
        self._caps = caps or Caps()
        self._pace = pace or Pace()
        self._quarantine = Quarantine()

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Return for each query its reading, or why there is none.

        Runs that were too heavy last time come last; those past the caps are asked for ever more rarely.
        """
        held = self._quarantine.held(self._clock.now_s())
        asked = set(queries) - held.keys()
        order = sorted(asked, key=lambda query: (self._quarantine.is_heavy(query), query.run_id, query.metric))
        now = Pass(self._http, self._pace.workers, self._pace.seconds)
        with ThreadPoolExecutor(self._pace.workers, thread_name_prefix="mlflow-read") as pool:
            answers = pool.map(lambda query: self._reading(now, query), order)
            readings = dict(zip(order, answers, strict=True))
        known = {query: error for query, error in held.items() if query in queries}
        return {**self._quarantine.judged(readings, self._clock.now_s()), **known}

    def naming(self, cluster: str, raw_ids: Sequence[int]) -> Mapping[int, tuple[RunFacts, ...] | EvalstopError]:
        """Return for each job the running runs whose tags name it, or why they cannot be told."""
        now = Pass(self._http, self._pace.workers, self._pace.seconds)
        return finder.naming(now, self._pace.workers, cluster, raw_ids)

    def runs_of(self, experiment: str, most: int) -> tuple[RunFacts, ...]:
        """Return the facts of an experiment's runs, the newest first. Raises Rejected or Unavailable."""
        return listing.runs_of(self._http, experiment, most)

    def ping(self) -> str:
        """Say that the API itself answers us (its health page would, even where we are not let in)."""
        # A search, for no one experiment need exist or be open to us: a tracker may have no default one.
        self._http.get("/experiments/search", {"max_results": "1"})
        return "its API answers"

    def clock_s(self) -> float:
        """Return the server's time (whole seconds since the epoch). Raises Unavailable where it does not date."""
        said = self._http.date("/experiments/search", {"max_results": "1"})
        try:
            dated = parsedate_to_datetime(said)
            return (dated if dated.tzinfo is not None else dated.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise Unavailable(f"MLflow's answers are not dated ({one_line(said, 60)!a})") from None

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags on a run and read them back. Raises Unavailable or Rejected."""
        runs.set_tags(self._http, run_id, tags)

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING; return the status it has afterwards."""
        return runs.mark_killed(self._http, run_id, int(self._clock.now_s() * 1000))

    def _reading(self, now: Pass, query: RunQuery) -> RunReading | EvalstopError:
        try:
            # The facts first: the history of a run that is not there is an empty 200.
            facts = runs.facts(now, query.run_id)
            return RunReading(facts, self._points(now, query, facts), self._proxy(now, query, facts))
        except EvalstopError as error:
            return error

    def _points(self, now: Pass, query: RunQuery, facts: RunFacts) -> tuple[Point, ...]:
        """Return the metric's points with their standard errors; what tells those costs a call or two, if there."""

        def beside(name: str) -> tuple[Point, ...]:
            return history(now, RunQuery(query.run_id, name), self._caps)

        return completed(query.metric, history(now, query, self._caps), facts.metrics, beside, query.items)

    def _proxy(self, now: Pass, query: RunQuery, facts: RunFacts) -> tuple[Point, ...]:
        """Return the proxy's points; trouble with them costs the alarm they are for, never the reading."""
        if query.proxy not in facts.metrics or query.proxy == query.metric:
            return ()
        try:
            return history(now, RunQuery(query.run_id, query.proxy), self._caps)
        except EvalstopError:
            return ()
