"""The curve of a job: the evals of all its lives and runs, one score per step, in step order."""

import math
from collections.abc import Iterable, Sequence

from evalstopd.core.model import Eval, Mode, Point

# MLflow stores an infinity as the largest double; nothing real is that large.
_LARGEST_SCORE = 1e308


def is_score(value: float | None) -> bool:
    """Tell whether a value can count as a score; missing, NaN and infinite ones neither count nor reset."""
    return value is not None and math.isfinite(value) and abs(value) < _LARGEST_SCORE


def curve(points: Iterable[Point]) -> tuple[Eval, ...]:
    """Return the curve of a job's points, whatever their order and however often they are repeated.

    What a later life repeats replaces the earlier; within a life the client's later timestamp does.
    """
    return tuple(map(_as_eval, per_step(points)))


def per_step(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that make a job's curve: of each step the one that counts, in step order."""
    latest: dict[int, Point] = {}
    for point in points:
        held = latest.get(point.step)
        if is_score(point.value) and (held is None or _recency(held) < _recency(point)):
            latest[point.step] = point
    return tuple(latest[step] for step in sorted(latest))


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
