"""Long curves are folded in slices over several passes, so that no job's history delays the verdicts on other jobs.

What is folded by now is kept in the process alone: who forgets it folds anew, to the same verdicts. A job whose turn
has not come, or whose fold is not at its end, is left as if its run had not been read in this pass.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from evalstopd.core.detectors import Detector, Verdict
from evalstopd.core.model import Eval, JobKey
from evalstopd.core.plan import VIEW
from evalstopd.core.rules import make_detector
from evalstopd.core.watch import Terms

LONG = 4_000
"""So many evals are folded of any job in any pass: none of them waits for a turn."""
SLICE = 20_000
"""Evals that are folded of one longer curve in one pass; the dearest rules take 17 microseconds for one."""
POT = 3 * SLICE
"""Evals after which no further such slice is begun in a pass."""
_PATIENCE = 8
_MOST_HELD = 200


def is_long(evals: Sequence[Eval]) -> bool:
    """Tell whether a curve is folded in slices."""
    return len(evals) > LONG


@dataclass(frozen=True, slots=True)
class Ask:
    """A job whose verdicts are wanted after each eval of its curve from the place `since` on."""

    key: JobKey
    terms: Terms
    evals: tuple[Eval, ...]
    since: int


@dataclass(slots=True)
class _Fold:
    """A fold that has come to `place`, by evals that hash to `seen`; it has the verdicts from `since` on.

    `slices` are those that were taken since it last came to an end, of a curve that has changed since, too.
    """

    detector: Detector
    since: int
    slices: int
    state: Any
    place: int = 0
    seen: int = 0
    verdicts: list[Verdict] = field(default_factory=list)

    def fits(self, detector: Detector, ask: Ask) -> bool:
        """Tell whether it is of this rule and curve, as far as it has come."""
        alike = self.detector == detector and self.since <= ask.since and self.place <= len(ask.evals)
        return alike and self.seen == _hash(ask.evals[: self.place])

    def left(self, ask: Ask) -> int:
        """Return how many evals of the curve it has not taken."""
        return len(ask.evals) - self.place

    def wanted(self, ask: Ask) -> int:
        """Return how many evals are taken next: more and more, so that a curve that keeps changing is done some day."""
        return min(self.left(ask), SLICE << min(self.slices // _PATIENCE, 8))

    def go_on(self, ask: Ask, number: int) -> None:
        """Take so many evals more."""
        first, self.place = self.place, self.place + number
        for at, point in enumerate(ask.evals[first : self.place], first):
            if at < self.since:
                self.state = self.detector.take(self.state, point)
            else:
                self.state, verdict = self.detector.step(self.state, point)
                self.verdicts.append(verdict)
        self.seen = _hash(ask.evals[: self.place])
        self.slices += 1

    def handed_over(self, ask: Ask) -> tuple[Verdict, ...]:
        """Return the verdicts at the end of the curve; the last one is kept, for a pass that brings no eval."""
        found = tuple(self.verdicts[ask.since - self.since :])
        self.since, self.verdicts, self.slices = self.place - 1, self.verdicts[-1:], 0
        return found


@dataclass(slots=True)
class Folds:
    """The folds of long curves from pass to pass. Owners take turns, and of each one the jobs that waited longest."""

    _folds: dict[JobKey, _Fold] = field(default_factory=dict)
    _served: dict[JobKey | int, int] = field(default_factory=dict)
    _passes: int = 0

    def answers(self, asked: Sequence[Ask]) -> Mapping[JobKey, tuple[Verdict, ...]]:
        """Return the verdicts on each of these jobs whose fold has come to the end of its curve.

        Of one that its rule breaks on there are none: whoever folds it by itself sees why.
        """
        self._passes += 1
        found: dict[JobKey, tuple[Verdict, ...]] = {}
        begun = [(ask, fold) for ask in asked if (fold := self._of(ask, found)) is not None]
        left = POT
        for ask, fold in sorted(begun, key=lambda each: self._turn(*each)):
            short = fold.left(ask) <= LONG
            if not short and left <= 0:
                continue
            left -= 0 if short else fold.wanted(ask)
            self._further(ask, fold, found)
        self._forget({each.key for each in asked})
        return found

    def _of(self, ask: Ask, found: dict[JobKey, tuple[Verdict, ...]]) -> _Fold | None:
        """Return the job's fold, made anew where it is of another curve or rule by now."""
        fold = self._folds.get(ask.key)
        try:
            detector = make_detector(ask.terms)
            if fold is None or not fold.fits(detector, ask):
                fold = _Fold(detector, ask.since, fold.slices if fold is not None else 0, detector.start(VIEW))
        except Exception:  # noqa: BLE001  the rule's own fault: the judging of this one job meets and reports it
            found[ask.key] = ()
            return None
        self._folds[ask.key] = fold
        return fold

    def _turn(self, ask: Ask, fold: _Fold) -> tuple[bool, int, int]:
        """Return a job's place in the line: those with little left, then whose owner, and who, waits longest."""
        return fold.left(ask) > LONG, self._served.get(ask.key.uid, 0), self._served.get(ask.key, 0)

    def _further(self, ask: Ask, fold: _Fold, found: dict[JobKey, tuple[Verdict, ...]]) -> None:
        self._served[ask.key.uid] = self._served[ask.key] = self._passes
        try:
            fold.go_on(ask, fold.wanted(ask))
        except Exception:  # noqa: BLE001  as above
            found[ask.key] = ()
            del self._folds[ask.key]
            return
        if not fold.left(ask):
            found[ask.key] = fold.handed_over(ask)

    def _forget(self, asked: AbstractSet[JobKey]) -> None:
        """Drop folds that were not asked for, the oldest first, where there are too many."""
        idle = [key for key in self._folds if key not in asked]
        for key in idle[: max(0, len(self._folds) - _MOST_HELD)]:
            del self._folds[key]
            self._served.pop(key, None)


def _hash(evals: Sequence[Eval]) -> int:
    """Return a hash of all that a rule may see of evals: when they arrived is not among it."""
    return hash(tuple((each.step, each.score, each.stderr, each.life, each.elapsed_s, each.loss) for each in evals))
