"""Steps that come again in one run and life: a training that starts over, a second series, or one late value."""

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
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


def standing(ordered: Sequence[Point], found: Sequence[Return]) -> Iterator[Point]:
    """Yield the points that a later restart has not replaced, the newest first; an open going back is left out."""
    left = list(found)
    least: float = math.inf
    for place in range(len(ordered) - 1, -1, -1):
        while left and left[-1].start > place:
            gone = left.pop()
            least = min(least, gone.step) if gone.kind is Kind.RESTART else least
        waits = left and left[-1].kind is Kind.OPEN
        if ordered[place].step < least and not waits:
            yield ordered[place]


def begun_again(points: Iterable[Point], since_s: float, up_to: int) -> Return | None:
    """Return the last going back of one run's and life's points to a step that is not beyond `up_to`.

    A restart counts if it was known after a moment (by our clock) only, an open one in any case: what it is, the next
    eval will tell. What is of another series is none. One that repeats its values, or has evals at other steps, shows
    only in when it was logged.
    """
    ordered = in_time(points)
    return _gone_back(ordered, since_s, up_to) or _logged_anew(ordered, since_s, up_to)


def _gone_back(ordered: Sequence[Point], since_s: float, up_to: int) -> Return | None:
    if len({each.step for each in ordered}) == len(ordered):
        return None
    for back in reversed(returns(ordered)):
        if back.step > up_to or back.kind is Kind.APART:
            continue
        if back.kind is Kind.OPEN or _known_s(ordered, back) > since_s:
            return back
    return None


def _logged_anew(ordered: Sequence[Point], since_s: float, up_to: int) -> Return | None:
    """Return the going back of what came after a moment and was logged after all that was known then.

    Its values may be those that were there, and its steps may have had none: two in a row that grow are a restart, for
    late values bear the times at which they were logged. One alone is open until a step beyond the newest comes.
    """
    known = [each for each in ordered if each.arrived_s <= since_s]
    if not known:
        return None
    newest = max((each.step for each in standing(known, returns(known))), default=up_to)
    first: int | None = None
    for place, point in enumerate(ordered):
        if point.arrived_s <= since_s or point.timestamp_ms <= known[-1].timestamp_ms:
            continue
        if point.step > newest:
            newest, first = point.step, None
        elif first is not None and point.step > first:
            return Return(Kind.RESTART, first, place, len(ordered))
        elif point.step < newest and point.step <= up_to:
            first = point.step
    return None if first is None else Return(Kind.OPEN, first, len(ordered) - 1, len(ordered))


def _known_s(ordered: Sequence[Point], back: Return) -> float:
    """Return when the first value came that a going back went on with."""
    return next(each.arrived_s for each in ordered[back.start : back.end] if each.step > back.step)


@dataclass(slots=True)
class _Back:
    """A going back that goes on, from `step` to `last` by now."""

    start: int
    step: int
    last: int
    own: dict[int, float]


@dataclass(slots=True)
class _Walk:
    """The steps as they come; each is looked at once or twice, however many goings back there are.

    `held` has the values of the training that there is, or that was there before the going back; `steps` are its, in
    order.
    """

    held: dict[int, float] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)
    before: int | None = None
    back: _Back | None = None
    found: list[Return] = field(default_factory=list)
    taken: int = 0

    def take(self, place: int, point: Point) -> None:
        self.taken = place + 1
        if self.back is None:
            self._take_plainly(place, point)
        elif self._follows(self.back, point.step):
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
        if kind is Kind.RESTART:
            self._drop_from(back.step)
        for step, value in back.own.items():
            self._keep(step, value)
        self.back = None

    def _follows(self, back: _Back, step: int) -> bool:
        """Tell whether a step comes next, or between, and leaves none out that was there before."""
        next_ = bisect.bisect_right(self.steps, back.last)
        return step >= back.last and (next_ == len(self.steps) or step <= self.steps[next_])

    def _take_below(self, place: int, point: Point, back: _Back) -> None:
        """Take a point of a step that the going back has passed, or that lies before its first."""
        known = back.own if point.step >= back.step else self.held
        if is_score(point.value) and known.get(point.step, point.value) != point.value:
            self.close(place, gone_on=back.last == back.step)
            self._take_plainly(place, point)
        elif known is back.own:
            _hold(known, point)
        else:
            self._hold(point)

    def _take_plainly(self, place: int, point: Point) -> None:
        if self._goes_back(point):
            self.back = _Back(place, point.step, point.step, {point.step: point.value})
        else:
            self._hold(point)

    def _goes_back(self, point: Point) -> bool:
        if not self.steps or point.step >= self.steps[-1] or point.step == self.before or not is_score(point.value):
            return False
        return self.held.get(point.step, point.value) != point.value

    def _hold(self, point: Point) -> None:
        if is_score(point.value):
            self._keep(point.step, point.value)

    def _keep(self, step: int, value: float) -> None:
        if step not in self.held:
            bisect.insort(self.steps, step)
        self.held[step] = value

    def _drop_from(self, step: int) -> None:
        first = bisect.bisect_left(self.steps, step)
        for each in self.steps[first:]:
            del self.held[each]
        del self.steps[first:]


def _hold(values: dict[int, float], point: Point) -> None:
    if is_score(point.value):
        values[point.step] = point.value


def _moment(point: Point) -> tuple[int, int, bool, float]:
    scored = is_score(point.value)
    return point.timestamp_ms, point.step, scored, point.value if scored else 0.0
