"""What a detector answers after an eval, and the fold that makes every detector a function of the curve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evalstopd.core.curve import is_score
from evalstopd.core.model import Eval, JobView


@dataclass(frozen=True, slots=True)
class KeepGoing:
    """Nothing speaks against the run."""


@dataclass(frozen=True, slots=True)
class Declining:
    """The run is on its way to a stop: `count` steps of `of`; `stride` is how many of them are taken at once."""

    count: int
    of: int
    stride: int = 1

    @property
    def last(self) -> bool:
        """Tell whether the next step would be the stop: declining (k - 1 of k), or all blocks but one."""
        return self.count + self.stride >= self.of


@dataclass(frozen=True, slots=True)
class Stop:
    """The rule would end the run here; `reason` is what its owner reads, `count` the declines it took."""

    reason: str
    count: int = 0


Verdict = KeepGoing | Declining | Stop
KEEP_GOING = KeepGoing()


class Detector(Protocol):
    """A stopping rule as a fold: state, eval -> state, verdict. It keeps nothing itself.

    The state is a plain value of the rule's own; it may be thrown away and folded anew at any time.
    """

    __slots__ = ()

    @property
    def spec(self) -> str:
        """Return the rule with its parameters as text, the form that `registry.detector` reads."""

    def start(self, job: JobView) -> Any:
        """Return the state before the first eval."""

    def step(self, state: Any, point: Eval) -> tuple[Any, Verdict]:
        """Take one eval in step order; a score that is not finite must change nothing."""

    def take(self, state: Any, point: Eval) -> Any:
        """Take one eval of which no verdict is asked: return the state that `step` returns."""
        return self.step(state, point)[0]


def fold(detector: Detector, job: JobView, evals: Sequence[Eval], since: int = 0) -> tuple[Verdict, ...]:
    """Return the verdict after each eval of a curve, or after those from the place `since` on.

    Scores that are not finite are passed over and have no place.
    """
    scored = [point for point in evals if is_score(point.score)]
    state = detector.start(job)
    for point in scored[:since]:
        state = detector.take(state, point)
    verdicts: list[Verdict] = []
    for point in scored[since:]:
        state, verdict = detector.step(state, point)
        verdicts.append(verdict)
    return tuple(verdicts)
