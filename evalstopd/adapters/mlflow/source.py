"""MLflow as the loop knows it: many runs read side by side, each run's trouble its own; writes one at a time."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime

from evalstopd.adapters.mlflow import finder, listing, runs
from evalstopd.adapters.mlflow.bulk import BulkHistory, BulkInterval, BulkRoute
from evalstopd.adapters.mlflow.footing import Footing
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.labels import Labels
from evalstopd.adapters.mlflow.ladder import Ladder, Rung
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.problems import one_line
from evalstopd.adapters.mlflow.quarantine import Quarantine
from evalstopd.adapters.mlflow.readings import Whole, reading, series_of
from evalstopd.adapters.mlflow.rights import Rights
from evalstopd.adapters.mlflow.roster import Roster
from evalstopd.core.binding import RunFacts
from evalstopd.core.datasets import needs_telling
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.ports import Clock, RunQuery, RunReading

_BATCH = 800
# How much of a pass's time may be spent on telling datasets apart: all other jobs wait for it to be decided on.
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Pace:
    """How a pass is walked: runs read at once, seconds for the whole pass."""

    workers: int = 4
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Ways:
    """Which ways of asking may be used beside the documented one, a call for each run and series.

    `database` is the site's own, for series alone: it comes first where there is one.
    """

    search: bool = True
    bulk_history: bool = True
    bulk_interval: bool = True
    database: BulkRoute | None = None

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """Return the bulk routes, best first."""
        chosen: tuple[tuple[bool, BulkRoute], ...] = (
            (self.bulk_history, BulkHistory()),
            (self.bulk_interval, BulkInterval()),
        )
        own = (self.database,) if self.database is not None else ()
        return tuple(Rung(route, Footing()) for route in (*own, *(route for wanted, route in chosen if wanted)))


class MlflowSource:
    """MetricsSource, RunFinder, RunList and RunWriter over one HTTP client, which is not its own."""

    def __init__(
        self,
        http: Http,
        clock: Clock,
        caps: Caps | None = None,
        pace: Pace | None = None,
        ways: Ways | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        ways = ways or Ways()
        self._http = http
        self._clock = clock
        self._pace = pace or Pace()
        caps = caps or Caps()
        self._ladder = Ladder(ways.rungs, caps, self._pace.workers)
        briefly = replace(caps, seconds=min(caps.seconds, self._pace.seconds * _SHARE / 2))
        self._labels = Labels(self._pace.workers, briefly)
        self._quarantine = Quarantine()
        self._rights = Rights()
        self._roster = Roster(Footing() if ways.search else None, self._pace.workers, now_s)

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Return for each query its reading, or why there is none. Where the time is short, the first ones are read.

        Runs that gave trouble last time come after the others have been read whole; those past the caps are asked
        for ever more rarely.
        """
        held = self._quarantine.held(queries, self._clock.now_s())
        now = Pass(self._http, self._pace.workers, self._pace.seconds)
        asked = [query for query in queries if query not in held]
        calm = [query for query in asked if not self._gave_trouble(query)]
        last = [query for query in asked if self._gave_trouble(query)]
        # Batch by batch: if all facts came before all evals, a slow server would be out of time before any eval.
        batches = [calm[start : start + _BATCH] for start in range(0, len(calm), _BATCH)]
        found: dict[RunQuery, RunReading | EvalstopError] = {}
        mixed: dict[RunQuery, Whole] = {}
        for batch in (*batches, last):
            found |= self._read(now, batch, mixed)
        found |= self._told_apart(now, mixed)
        readings = self._quarantine.judged(self._rights.judged(now, found), self._clock.now_s())
        return {**readings, **held}

    def _read(
        self, now: Pass, queries: Sequence[RunQuery], mixed: dict[RunQuery, Whole]
    ) -> dict[RunQuery, RunReading | EvalstopError]:
        """Return readings; what has several series under one name is put aside into `mixed`."""
        # The facts first: the history of a run that is not there is an empty answer.
        facts = self._roster.read(now, _needs(queries), {query.run_id for query in queries if query.fresh})
        there = ((query, facts[query.run_id]) for query in queries)
        wanted = [each for query, known in there if isinstance(known, RunFacts) for each in series_of(query, known)]
        series = self._ladder.read(now, wanted)
        for query in queries:
            known, points = facts[query.run_id], series.get(RunQuery(query.run_id, query.metric), ())
            if not (isinstance(points, tuple) and isinstance(known, RunFacts)):
                continue
            if needs_telling(points, query.dataset, apart=query.apart, labelled=known.labels > 0):
                mixed[query] = Whole(known, {each: series[each] for each in series_of(query, known)})
        return {query: reading(query, facts[query.run_id], series) for query in queries if query not in mixed}

    def _told_apart(self, now: Pass, mixed: Mapping[RunQuery, Whole]) -> dict[RunQuery, RunReading | EvalstopError]:
        """Return the readings of what has several series: last and briefly, at no other's cost."""
        asks = now if now.over else Pass(self._http, self._pace.workers, self._pace.seconds * _SHARE)
        said = self._labels.told(asks, mixed)
        return {query: reading(query, each.facts, each.series, said[query]) for query, each in mixed.items()}

    def _gave_trouble(self, query: RunQuery) -> bool:
        heavy = self._quarantine.is_heavy(query) or self._roster.is_heavy(query.run_id)
        return heavy or self._ladder.is_alone(RunQuery(query.run_id, query.metric))

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
        return f"its API answers; evals are read by {self._ladder.probed(Pass(self._http, 1, self._pace.seconds))}"

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
        self._roster.forget(run_id)
        runs.set_tags(self._http, run_id, tags)

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING; return the status it has afterwards."""
        self._roster.forget(run_id)
        return runs.mark_killed(self._http, run_id, int(self._clock.now_s() * 1000))


def _needs(queries: Iterable[RunQuery]) -> dict[str, set[str]]:
    needs: dict[str, set[str]] = {}
    for query in queries:
        needs.setdefault(query.run_id, set()).add(query.metric)
    return needs
