"""What is logged beside a metric and tells how noisy its evals are: standard errors, or numbers of items."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from evalstopd.core.curve import is_score
from evalstopd.core.model import Point
from evalstopd.core.noise import from_items

STDERR = "_stderr"
"""What a metric's name ends in where its own standard error is logged beside it (lm-evaluation-harness)."""

_SHARE = re.compile(r"(^|[/_.@-])(acc|accurac(y|ies)|exact_match|em|pass|(win|solve|success)_?rate)([/_.@-]|$)")
_SCORER = re.compile(r"(?P<scorer>.+)/(accuracy|mean)")
_PREFIX_END = re.compile(r"[_/]")
_MOST_ITEMS = 1e12

Read = Callable[[str], Sequence[Point]]


def is_share(metric: str) -> bool:
    """Tell whether a metric's name says that it is a share of right answers; its error then follows from the items."""
    return _SHARE.search(metric) is not None


def completed(
    metric: str, points: Sequence[Point], names: Collection[str], read: Read, items: int = 0
) -> tuple[Point, ...]:
    """Return the points with their standard errors, as far as what is logged beside the metric tells them.

    `<metric>_stderr` (Inspect: `<scorer>/stderr`) if there, else, for a share of right answers, from the number of
    items of each eval. `names` are the run's metrics, `read` reads another one and is called for what is needed
    alone. `items` is what the site says of a share whose number of items is not logged; 0: nothing.
    """
    told_by = beside(metric, names) if points else ()
    if told_by and told_by[0] in _error_names(metric):
        return with_errors(points, read(told_by[0]))
    if told_by:
        return with_items(points, _counts([read(name) for name in told_by]))
    return tuple(_with_count(point, items) for point in points) if items else tuple(points)


def beside(metric: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the run's metrics that tell a metric's standard errors: one that is them, or those that count items."""
    errors = next((name for name in _error_names(metric) if name in names), None)
    if errors is not None:
        return (errors,)
    return _counted_by(metric, names) if is_share(metric) else ()


def is_beside(name: str, names: Collection[str]) -> bool:
    """Tell whether a metric is the standard error of another one of the run."""
    return name.endswith(STDERR) or (name.endswith("/stderr") and _inspected(name, names))


def with_errors(points: Sequence[Point], errors: Iterable[Point]) -> tuple[Point, ...]:
    """Return points with the standard errors that were logged beside them: same step, nearest in time.

    What is no standard error (zero, negative, not finite) counts as not logged.
    """
    by_step = _by_step(errors)
    return tuple(_with_error(point, by_step.get(point.step)) for point in points)


def with_items(points: Sequence[Point], counts: Iterable[Point]) -> tuple[Point, ...]:
    """Return points with the standard error that their numbers of items give, where the score is a share.

    The count of a point is that of its step, else the last before it, else the first after: trainers may log it once.
    """
    by_step = _by_step(counts)
    steps = sorted(by_step)
    return tuple(_with_count(point, _nearest(point, by_step, steps)) for point in points) if steps else tuple(points)


def _error_names(metric: str) -> tuple[str, ...]:
    scorer = _SCORER.fullmatch(metric)
    return (f"{metric}{STDERR}", *((f"{scorer['scorer']}/stderr",) if scorer else ()))


def _inspected(name: str, names: Collection[str]) -> bool:
    scorer = name.removesuffix("/stderr")
    return any(f"{scorer}/{score}" in names for score in ("accuracy", "mean"))


def _counted_by(metric: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the metrics that tell the number of items: one that counts, or two whose product is the count.

    In this order: the metric's own `_n`, `_items`, `_samples`; for each prefix of its name, the longest first,
    `<prefix>_samples` (scripts of Hugging Face) and the Trainer's own `<prefix>_runtime` x
    `<prefix>_samples_per_second`, with `_` or `/` between; MLflow's `example_count`.
    """
    own = [(f"{metric}_{word}",) for word in ("n", "items", "samples")]
    ends = [each.start() for each in _PREFIX_END.finditer(metric)]
    starts = [metric[: end + 1] for end in reversed(ends)]
    shared = [each for at in starts for each in ((f"{at}samples",), (f"{at}runtime", f"{at}samples_per_second"))]
    counted = [(f"{at}example_count",) for at in (*starts, "")]
    return next((each for each in (*own, *shared, *counted) if set(each) <= set(names)), ())


def _counts(series: Sequence[Sequence[Point]]) -> list[Point]:
    """Return the counts: as logged, or the product of two metrics step by step."""
    if len(series) == 1:
        return list(series[0])
    seconds = _by_step(series[0])
    pairs = ((rate, _closest(rate, seconds[rate.step])) for rate in series[1] if rate.step in seconds)
    return [replace(rate, value=round(rate.value * spent)) for rate, spent in pairs if is_score(rate.value)]


_Timed = list[tuple[int, float]]
"""The client's times in milliseconds and the values of one step, sorted."""


def _by_step(points: Iterable[Point]) -> dict[int, _Timed]:
    found: dict[int, _Timed] = {}
    for each in points:
        if is_score(each.value) and each.value > 0:
            found.setdefault(each.step, []).append((each.timestamp_ms, each.value))
    for timed in found.values():
        timed.sort()
    return found


def _with_error(point: Point, errors: _Timed | None) -> Point:
    return replace(point, stderr=_closest(point, errors)) if errors else point


def _closest(point: Point, others: _Timed) -> float:
    """Return the value nearest in time, the smallest of those equally near; a step may have as many as the run."""
    at = bisect_left(others, (point.timestamp_ms, -math.inf))
    # The smallest of those at or after the point, and of those at the last moment before it.
    near = [others[at]] if at < len(others) else []
    if at:
        near.append(others[bisect_left(others, (others[at - 1][0], -math.inf))])
    return min((abs(time_ms - point.timestamp_ms), value) for time_ms, value in near)[1]


def _nearest(point: Point, by_step: dict[int, _Timed], steps: Sequence[int]) -> float:
    step = steps[max(0, bisect_right(steps, point.step) - 1)]
    return _closest(point, by_step[step])


def _with_count(point: Point, items: float) -> Point:
    if not (is_score(point.value) and 0 <= point.value <= 1 and 1 <= items <= _MOST_ITEMS):
        return point
    return replace(point, stderr=from_items(point.value, round(items)))
