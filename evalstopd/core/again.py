"""Steps that come again in one run and life: a training that starts over, a second series, or one late value."""

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from evalstopd.core.model import Point, is_score


class Kind(StrEnum):
    """What a step that came again, long after its first value, was.

    OPEN: nothing came after it yet, so that it may still be any. RESTART: all later steps came again after it, in
    order. APART: the values before went on after it, so that it is of another series, or a correction.
    """

    OPEN = "open"
    RESTART = "restart"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class Return:
    """One going back to `step`: its points are those from `start` on and before `end`, places in time."""

    kind: Kind
    step: int
    start: int
    end: int

    def replaces(self, place: int, point: Point) -> bool:
        """Tell whether a point is no longer of the training, or not yet, by what was gone back to here."""
        if self.kind is Kind.OPEN:
            return self.start <= place < self.end
        return self.kind is Kind.RESTART and place < self.start and point.step >= self.step


def in_time(points: Iterable[Point]) -> list[Point]:
    """Return points in the order in which their client logged them, whatever order they are given in."""
    return sorted(points, key=_moment)


def returns(ordered: Iterable[Point]) -> tuple[Return, ...]:
    """Return each going back to an earlier step within the points of one run and life, in the order of time.

    A value for a step that had none, however late, the value that a step has already, and a further one for the
    newest step, or for the step that was logged just before, go back to nothing.
    """
    walk = _Walk()
    for place, point in enumerate(ordered):
        walk.take(place, point)
    walk.close(walk.taken, gone_on=False)
    return tuple(walk.found)


@dataclass(slots=True)
class _Back:
    """A going back that goes on: `ahead` are the steps from its first one on that had values before, in order."""

    start: int
    step: int
    last: int
    ahead: list[int]
    own: dict[int, float]

    def follows(self, step: int) -> bool:
        """Tell whether a step comes next, or between, and leaves none out that was there before."""
        next_ = bisect.bisect_right(self.ahead, self.last)
        return step >= self.last and (next_ == len(self.ahead) or step <= self.ahead[next_])


@dataclass(slots=True)
class _Walk:
    """The steps as they come: `held` has what the training before a going back had, or the one there is."""

    held: dict[int, float] = field(default_factory=dict)
    top: int | None = None
    before: int | None = None
    back: _Back | None = None
    found: list[Return] = field(default_factory=list)
    taken: int = 0

    def take(self, place: int, point: Point) -> None:
        self.taken = place + 1
        if self.back is None:
            self._take_plainly(place, point)
        elif self.back.follows(point.step):
            self.back.last = point.step
            _hold(self.back.own, point)
        elif point.step > self.back.last:
            self.close(place, gone_on=True)
            self._take_plainly(place, point)
        else:
            self._take_below(place, point, self.back)
        self.before = point.step

    def close(self, end: int, *, gone_on: bool) -> None:
        """Say what the going back was that ends here; `gone_on` where what was before it did."""
        back = self.back
        if back is None:
            return
        again = back.last > back.step
        kind = Kind.APART if gone_on else Kind.RESTART if again else Kind.OPEN
        self.found.append(Return(kind, back.step, back.start, end))
        kept = {step: value for step, value in self.held.items() if kind is not Kind.RESTART or step < back.step}
        self.held, self.back = kept | back.own, None
        self.top = max(self.held)

    def _take_below(self, place: int, point: Point, back: _Back) -> None:
        """Take a point of a step that the going back has passed, or that lies before its first."""
        known = back.own if point.step >= back.step else self.held
        if not is_score(point.value) or known.get(point.step, point.value) == point.value:
            _hold(known, point)
            return
        self.close(place, gone_on=back.last == back.step)
        self._take_plainly(place, point)

    def _take_plainly(self, place: int, point: Point) -> None:
        if self._goes_back(point):
            ahead = sorted(step for step in self.held if step > point.step)
            self.back = _Back(place, point.step, point.step, ahead, {point.step: point.value})
            return
        _hold(self.held, point)
        if is_score(point.value):
            self.top = point.step if self.top is None else max(self.top, point.step)

    def _goes_back(self, point: Point) -> bool:
        if self.top is None or point.step >= self.top or point.step == self.before or not is_score(point.value):
            return False
        return self.held.get(point.step, point.value) != point.value


def _hold(values: dict[int, float], point: Point) -> None:
    if is_score(point.value):
        values[point.step] = point.value


def _moment(point: Point) -> tuple[int, int, bool, float]:
    scored = is_score(point.value)
    return point.timestamp_ms, point.step, scored, point.value if scored else 0.0
