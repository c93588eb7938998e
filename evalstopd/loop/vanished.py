"""A history that lacks points of its run which were read before is no look at the run: nothing rests on it.

MLflow takes no value of a metric back. What answers without them (a proxy with an empty page, a replica that lags, a
database put back from a backup) does not show the run as it is now.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from evalstopd.core.model import JobKey, Point
from evalstopd.core.watch import Terms, Watch, in_effect
from evalstopd.errors import Unavailable
from evalstopd.loop.observe import Observation
from evalstopd.loop.report import Tally
from evalstopd.ports import Book, RunReading

Stored = Mapping[JobKey, Sequence[Point]]


def without_vanished(seen: Observation, book: Book, stored: Stored, tally: Tally) -> Observation:
    """Return what was seen without the readings that lack known points: they count as not read, which is said."""
    terms = {key: seen.seen[key].standing.terms for key in seen.readings}
    halves = {key for key, each in seen.readings.items() if lacks(each, terms[key], stored.get(key, ()))}
    closing = [watch for watch in book.watches if watch.key in seen.last]
    last = {each.key for each in closing if _lacks_at_last(seen.last[each.key], each, stored)}
    if not halves and not last:
        return seen
    why = _told(halves | last)
    tally.trouble(f"MLflow: {why}")
    tally.add("read", -len(halves))
    return replace(
        seen,
        readings={key: each for key, each in seen.readings.items() if key not in halves},
        unread={**seen.unread, **dict.fromkeys(halves, Unavailable(why))},
        last={key: each for key, each in seen.last.items() if key not in last},
    )


def _told(keys: AbstractSet[JobKey]) -> str:
    first, more = min(keys, key=lambda key: key.text), len(keys) - 1
    whose = f"job {first.job_id}'s run{f' (and {more} more)' if more else ''}"
    return f"the history of {whose} lacks points that were read before: it is not taken"


def lacks(reading: RunReading, terms: Terms, stored: Sequence[Point]) -> bool:
    """Tell whether points of this run and metric are known that the reading, which should be whole, has not."""
    known = {_place(point) for point in _expected(reading, terms, stored)}
    return bool(known) and not known <= {_place(point) for point in reading.points}


def _lacks_at_last(reading: RunReading, watch: Watch, stored: Stored) -> bool:
    return lacks(reading, in_effect(watch), stored.get(watch.key, ()))


def _expected(reading: RunReading, terms: Terms, stored: Sequence[Point]) -> Iterator[Point]:
    """Yield the known points that must come again.

    Not those below step 0, which bulk interval leaves out on MLflow 2. Where datasets are told apart, those of the
    reading's alone, and not its newest step, of which the models may not tell; while that may still come, none.
    """
    run_id = reading.facts.run_id
    ours = [each for each in stored if (each.run_id, each.metric) == (run_id, terms.metric) and each.step >= 0]
    if reading.dataset:
        ours = [each for each in ours if each.dataset == reading.dataset]
        newest = max((each.step for each in ours), default=0)
        yield from (each for each in ours if each.step < newest)
    elif not terms.dataset or reading.points or reading.untold:
        yield from ours


def _place(point: Point) -> tuple[int, int]:
    return point.step, point.timestamp_ms
