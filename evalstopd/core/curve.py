"""The curve of a job: the evals of all its lives and runs, one score per step, in step order."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from evalstopd.core.again import Kind, in_time, returns, standing
from evalstopd.core.model import Eval, Mode, Point, is_score

__all__ = ["best", "curve", "is_score", "per_step", "series"]


def series(points: Iterable[Point], metric: str, dataset: str = "") -> Iterator[Point]:
    """Yield the points of one series: of a metric, and of the dataset that they were told apart by; empty: of none."""
    return (each for each in points if (each.metric, each.dataset) == (metric, dataset))


def curve(points: Iterable[Point]) -> tuple[Eval, ...]:
    """Return the curve of a job's points, whatever their order and however often they are repeated.

    What a later life repeats replaces the earlier; within a life the client's later timestamp does. A later run that
    starts at an earlier step is another training (fine-tuning, then RL) or goes on from an earlier checkpoint: from
    its first step on nothing of the runs before it counts. Nor does, of a training that starts over in one run and
    life, what was before it from its first step on; one value for an older step is left out until more comes.
    """
    return tuple(map(_as_eval, per_step(points)))


def per_step(points: Iterable[Point], *, ended: bool = False) -> tuple[Point, ...]:
    """Return the points that make a job's curve: of each step the one that counts, in step order.

    Where the training has `ended`, nothing comes after the last value: for an older step it is a correction.
    """
    latest: dict[int, Point] = {}
    scores = [point for point in points if is_score(point.value)]
    runs = {point.run_id for point in scores}
    ends = _ends(scores) if len(runs) > 1 else dict.fromkeys(runs, math.inf)
    once = len({point.step for point in scores}) == len(scores)
    for point in scores if once else _standing(scores, ended=ended):
        held = latest.get(point.step)
        if point.step < ends[point.run_id] and (held is None or _recency(held) < _recency(point)):
            latest[point.step] = point
    return tuple(latest[step] for step in sorted(latest))


def _standing(scores: Iterable[Point], *, ended: bool) -> Iterator[Point]:
    """Yield the scores without those that a training that started over in their run and life has replaced.

    What has gone back to a step, and was not followed by anything yet, is left out: it may be such a training's first.
    """
    lives: defaultdict[tuple[str, int], list[Point]] = defaultdict(list)
    for point in scores:
        lives[point.run_id, point.life].append(point)
    for each in lives.values():
        ordered = in_time(each)
        yield from standing(ordered, [back for back in returns(ordered) if back.kind is Kind.RESTART or not ended])


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
