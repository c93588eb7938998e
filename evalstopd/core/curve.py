"""The curve of a job: the evals of all its lives and runs, one score per step, in step order."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from evalstopd.core.model import Eval, Mode, Point

# MLflow stores an infinity as the largest double; nothing real is that large.
_LARGEST_SCORE = 1e308


def is_score(value: float | None) -> bool:
    """Tell whether a value can count as a score; missing, NaN and infinite ones neither count nor reset."""
    return value is not None and -_LARGEST_SCORE < value < _LARGEST_SCORE


def series(points: Iterable[Point], metric: str, dataset: str = "") -> Iterator[Point]:
    """Yield the points of one series: of a metric, and of the dataset that they were told apart by; empty: of none."""
    return (each for each in points if (each.metric, each.dataset) == (metric, dataset))


def curve(points: Iterable[Point]) -> tuple[Eval, ...]:
    """Return the curve of a job's points, whatever their order and however often they are repeated.

    What a later life repeats replaces the earlier; within a life the client's later timestamp does. A later run that
    starts at an earlier step is another training (fine-tuning, then RL) or goes on from an earlier checkpoint: from
    its first step on nothing of the runs before it counts.
    """
    return tuple(map(_as_eval, per_step(points)))


def per_step(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that make a job's curve: of each step the one that counts, in step order."""
    latest: dict[int, Point] = {}
    scores = [point for point in points if is_score(point.value)]
    runs = {point.run_id for point in scores}
    ends = _ends(scores) if len(runs) > 1 else dict.fromkeys(runs, math.inf)
    for point in scores:
        held = latest.get(point.step)
        if point.step < ends[point.run_id] and (held is None or _recency(held) < _recency(point)):
            latest[point.step] = point
    return tuple(latest[step] for step in sorted(latest))


def _ends(points: Iterable[Point]) -> dict[str, float]:
    """Return for each run the step from which on a later run has taken its place."""
    began: dict[str, tuple[int, int]] = {}
    first: dict[str, int] = {}
    for point in points:
        at = (point.life, point.timestamp_ms)
        began[point.run_id] = min(began.get(point.run_id, at), at)
        first[point.run_id] = min(first.get(point.run_id, point.step), point.step)
    ends: dict[str, float] = {}
    end = math.inf
    for _, together in groupby(sorted(began, key=began.__getitem__, reverse=True), began.__getitem__):
        runs = list(together)
        ends |= dict.fromkeys(runs, end)
        end = min(end, *(first[run_id] for run_id in runs))
    return ends


def best(evals: Sequence[Eval], mode: Mode) -> Eval | None:
    """Return the best eval of a curve, the earliest among equals; None for an empty curve."""
    found: Eval | None = None
    for each in evals:
        if found is None or mode.better(each.score, found.score):
            found = each
    return found


def _recency(point: Point) -> tuple[int, int, float, str]:
    return (point.life, point.timestamp_ms, point.value, point.run_id)


def _as_eval(point: Point) -> Eval:
    return Eval(point.step, point.value, point.stderr, point.life, point.run_id, point.arrived_s)
