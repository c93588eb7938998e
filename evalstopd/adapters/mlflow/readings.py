"""Puts one run's reading together from the series that were read of it; of several datasets, one's alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from evalstopd.adapters.mlflow.ladder import Series
from evalstopd.core.binding import RunFacts
from evalstopd.core.datasets import Parted, Told, dataset_of, parted
from evalstopd.core.logged import beside, completed
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError
from evalstopd.ports import RunQuery, RunReading


@dataclass(frozen=True, slots=True)
class Whole:
    """What was read of a run whose metric has several series under its name."""

    facts: RunFacts
    series: Mapping[RunQuery, Series]


def series_of(query: RunQuery, facts: RunFacts) -> Iterator[RunQuery]:
    """Yield what is read for a query: its metric, and beside it what the run is known to have."""
    if not query.metric:
        return
    yield RunQuery(query.run_id, query.metric)
    for name in beside(query.metric, facts.metrics):
        yield RunQuery(query.run_id, name)
    if query.proxy in facts.metrics and query.proxy != query.metric:
        yield RunQuery(query.run_id, query.proxy)


def reading(
    query: RunQuery,
    facts: RunFacts | EvalstopError,
    series: Mapping[RunQuery, Series],
    told: Told | str | EvalstopError | None = None,
) -> RunReading | EvalstopError:
    """Put a reading together; trouble with the proxy costs the alarm that it is for, never the reading.

    `told` is what the run's logged models say where it has several series under the metric's name.
    """
    if isinstance(facts, EvalstopError):
        return facts
    if isinstance(told, EvalstopError):
        return told

    def read(name: str) -> tuple[Point, ...]:
        found = series.get(RunQuery(query.run_id, name), ())
        if isinstance(found, EvalstopError):
            raise found
        return found

    proxy = series.get(RunQuery(query.run_id, query.proxy), ()) if query.proxy != query.metric else ()
    try:
        part = Parted(read(query.metric))
        if told is not None:
            part = parted(query.metric, part.points, told, query.dataset, apart=query.apart)
        points = completed(query.metric, part.points, facts.metrics, _beside(part, told, read), query.items)
    except EvalstopError as error:
        return error
    return RunReading(facts, points, () if isinstance(proxy, EvalstopError) else proxy, part.dataset, part.untold)


def _beside(
    part: Parted, told: Told | str | None, read: Callable[[str], tuple[Point, ...]]
) -> Callable[[str], tuple[Point, ...]]:
    """Return what reads a metric beside the one that was asked for: of one dataset alone where that is told apart."""
    if not part.dataset or not isinstance(told, Told):
        return read
    return lambda name: told.beside(name, read(name), dataset_of(part.dataset))
