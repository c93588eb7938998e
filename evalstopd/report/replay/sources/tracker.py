"""A tracker's own runs of the past: an experiment, listed and read through the ports."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from evalstopd.core.binding import RunFacts
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, Rejected
from evalstopd.ports import MetricsSource, RunList, RunQuery, RunReading
from evalstopd.report.replay.history import History
from evalstopd.report.replay.sources.series import Origin, Pick, histories, job_of, wanted

SCHEME = re.compile(r"mlflow:(?P<experiment>.+)", re.DOTALL)
MOST_RUNS = 2000
_AT_ONCE = 50


class Tracker(MetricsSource, RunList, Protocol):
    """A tracker that lists its runs and reads them."""


def read_experiment(tracker: Tracker, experiment: str, pick: Pick) -> Iterator[History]:
    """Yield the histories of an experiment's newest 2,000 runs, standard errors logged beside a metric included.

    Raises Unavailable where a run cannot be read: a table with holes would look like a whole one. A run that the
    tracker refuses (deleted meanwhile, too many points) is left out, and so is a metric that has the evals of several
    datasets which cannot be told apart.
    """
    runs = tracker.runs_of(experiment, MOST_RUNS)
    for start in range(0, len(runs), _AT_ONCE):
        yield from _read(tracker, experiment, runs[start : start + _AT_ONCE], pick)


def _read(tracker: Tracker, experiment: str, runs: Sequence[RunFacts], pick: Pick) -> Iterator[History]:
    queries = [
        RunQuery(run.run_id, key, items=pick.items, dataset=pick.dataset)
        for run in runs
        for key in sorted(run.metrics)
        if wanted(key, pick, run.metrics)
    ]
    answers = tracker.read(queries)
    series: dict[str, dict[str, Sequence[Point]]] = {}
    for query in queries:
        points = _points(answers[query])
        if points:
            series.setdefault(query.run_id, {})[query.metric] = points
    jobs = {run.run_id: job_of(run.tags) for run in runs}
    for run_id, each in series.items():
        yield from histories(Origin(run_id, f"experiment {experiment}", "mlflow", jobs[run_id], timed=True), each, pick)


def _points(answer: RunReading | EvalstopError) -> tuple[Point, ...]:
    if isinstance(answer, RunReading):
        return () if answer.untold else answer.points
    if isinstance(answer, Rejected):
        return ()
    raise answer
