"""What arrived of a job since its run was last read: the new points, and the life that each belongs to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.binding import Bound
from evalstopd.core.curve import series
from evalstopd.core.model import Point
from evalstopd.core.watch import Terms, Watch
from evalstopd.ports import RunReading

_Identity = tuple[str, int, int, float | str]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A job's points after a reading: those that are new, and those held whose standard error came later."""

    curve: tuple[Point, ...]
    new: tuple[Point, ...]
    completed: tuple[Point, ...]


def arrivals(
    terms: Terms, life: Callable[[Point], int], reading: RunReading, stored: Sequence[Point], now_s: float
) -> Arrivals:
    """Return what arrived since the last reading, stamped with our time, its series and the life it belongs to.

    Only the metric, and of several datasets the one, that judges the job is its curve.
    """
    metric, dataset = terms.metric, terms.dataset
    read = {_identity(point): point for point in reading.points}
    known: dict[_Identity, Point] = {}
    completed: list[Point] = []
    for point in series(stored, metric, dataset):
        identity = _identity(point)
        same = read.get(identity)
        if point.stderr is None and same is not None and same.stderr is not None:
            point = replace(point, stderr=same.stderr)  # noqa: PLW2901  the same point, with what was missing
            completed.append(point)
        known[identity] = point
    fresh = (point for identity, point in read.items() if identity not in known)
    new = tuple(replace(point, metric=metric, dataset=dataset, life=life(point), arrived_s=now_s) for point in fresh)
    return Arrivals((*known.values(), *new), new, tuple(completed))


def life_of(watch: Watch, bound: Bound) -> Callable[[Point], int]:
    """Return which life a new point belongs to.

    What a run holds when a life first reads it is history: of the life before, or of an earlier job that logged to
    it. A job in its first life whose run nobody else had may have logged before we looked; its client's clock tells.
    """
    present, started_ms = watch.life.restarts, 1000 * (watch.started_s or 0.0)
    first_look = (watch.run_id, watch.read_life) != (bound.run_id, present)
    own = present == 0 and not bound.taken_over

    def life(point: Point) -> int:
        history = first_look and not (own and point.timestamp_ms >= started_ms)
        return present - 1 if history else present

    return life


def _identity(point: Point) -> _Identity:
    """Return what tells points apart; a NaN equals itself, and 0 is not -0."""
    value = point.value
    plain = value < 0 or value > 0
    return point.run_id, point.step, point.timestamp_ms, value if plain else repr(value)
