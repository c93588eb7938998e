"""The rule for evals whose standard error is known: a fall from the best stretch that noise cannot explain."""

import math
from dataclasses import dataclass
from itertools import repeat
from operator import mul, sub
from typing import ClassVar, NamedTuple

from evalstopd.core.curve import is_score
from evalstopd.core.detectors.verdict import KEEP_GOING, Declining, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView, Mode
from evalstopd.core.noise import from_curve

_LONGEST = 6
_KEPT = 24
_CAUTION, _FEWEST = 12.0, 6
_WEIGHTS = tuple(
    tuple(1 / math.sqrt(1 / earlier + 1 / last) for earlier in range(1, _LONGEST + 1))
    for last in range(1, _LONGEST + 1)
)
_Means = tuple[float, ...]


class _State(NamedTuple):
    """`recent`: the last 24 scores, more is better; `means`: of the last 1, 2, ... up to 6 of them. `bests`: after each
    of the last 7 evals, newest first, the best mean so far of each window length. `squares`, `errors`: sum of squares
    and number of the logged errors."""

    seen: int = 0
    recent: _Means = ()
    means: _Means = ()
    bests: tuple[_Means, ...] = ()
    squares: float = 0.0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class _DropTest(Detector):
    """The statistic z: the largest fall from an earlier window's mean to the last window's, in standard errors.

    z = max over lengths w1, w2 up to 6 of (best mean of w1 successive earlier evals - mean of the last w2) /
    (s sqrt(1 / w1 + 1 / w2)); the rule stops where z >= c = sqrt(2.5 + 4.6 ln t) - shift, t the evals seen. s is
    `sigma` if given (in units of the score), else the root mean square of the errors logged with the evals, else
    estimated from the last 6 to 24 evals and raised by 1 + 12 / evals, for such an estimate is loose. Cost per
    eval: 36 comparisons. Source: docs/rules.md, "drop test" (own work).
    """

    sigma: float = 0.0
    mode: Mode = Mode.MAX

    name: ClassVar[str]
    shortest: ClassVar[int] = 1
    first: ClassVar[int] = 2
    shift: ClassVar[float] = 0.0
    floored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.sigma < math.inf:
            raise ValueError(f"{self.name}: sigma must be finite and not negative, not {self.sigma}")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        return f"{self.name}:sigma={self.sigma:g}" if self.sigma else self.name

    def start(self, job: JobView) -> _State:
        """Return the state before the first eval."""
        del job
        return _State()

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: the windows so far and the verdict on them."""
        if not is_score(point.score):
            return state, self._verdict(state)
        state = _with(state, point, self.mode)
        return state, self._verdict(state)

    def take(self, state: _State, point: Eval) -> _State:
        """Take one eval: the windows so far, on which the verdict depends alone."""
        return _with(state, point, self.mode) if is_score(point.score) else state

    def threshold(self, seen: int) -> float:
        """Return the number of standard errors that stops a run after so many evals."""
        return math.sqrt(2.5 + 4.6 * math.log(seen)) - self.shift

    def _verdict(self, state: _State) -> Verdict:
        if state.seen < self.first:
            return KEEP_GOING
        fall, window = _fall(state, self.shortest)
        # Less than one standard error is nothing, whatever else the curve says of its noise.
        if fall < (self.sigma or _logged(state)):
            return KEEP_GOING
        noise = self._noise(state)
        if noise <= 0:
            return KEEP_GOING
        limit = self.threshold(state.seen)
        if fall >= limit * noise:
            # The mean of the last evals may be low although the newest is as good as any before.
            if state.recent[-1] >= state.bests[0][0]:
                return KEEP_GOING
            return Stop(self._reason(fall / noise, limit, window), window)
        whole = math.ceil(limit)
        count = min(int(max(fall, 0) / noise), whole - 1)
        return Declining(count, whole) if count else KEEP_GOING

    def _noise(self, state: _State) -> float:
        if self.sigma:
            return self.sigma
        if not state.errors:
            return _unknown(state.recent)
        logged = _logged(state)
        return max(logged, from_curve(state.recent)) if self.floored else logged

    def _reason(self, fall: float, limit: float, window: int) -> str:
        verb = "fell" if self.mode is Mode.MAX else "rose"
        last = "the last eval" if window == 1 else f"the mean of the last {window} evals"
        return f"{last} {verb} from the best stretch by {fall:.1f} standard errors (limit {limit:.1f})"


@dataclass(frozen=True, slots=True)
class DropTestPaper(_DropTest):
    """Stop when the score has fallen from its best stretch by more than noise explains; tuned for preset `paper`.

    Windows from 1, shift .75. Only for runs of about 8 evals that still rise at the end: of flat runs of
    5 / 8 / 12 evals it stops 14 / 21 / 26 %.
    """

    name: ClassVar[str] = "drop-test-paper"
    shift: ClassVar[float] = 0.75


@dataclass(frozen=True, slots=True)
class DropTestSafe(_DropTest):
    """Stop when the score has fallen from its best stretch by more than noise explains, in flat runs too.

    Windows from 2, no shift, no verdict before 4 evals; the noise is never taken below what the curve shows. With
    known errors it stops .3 / .8 / 1.2 / 2.1 / 3.2 / 4.4 % of flat Gaussian runs of 5 / 8 / 12 / 20 / 50 / 100 evals.
    """

    name: ClassVar[str] = "drop-test-safe"
    shortest: ClassVar[int] = 2
    first: ClassVar[int] = 4
    floored: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class HighPower(_DropTest):
    """Stop early even where evals are very noisy, at a false-stop rate that is stated and not small.

    The drop test of preset `paper` with shift 1: at noise .12 there it finds three quarters of the hacking runs and
    stops 3 % of the healthy ones. It buys power with safety on plateaus: not for runs that have stopped rising.
    """

    name: ClassVar[str] = "high-power"
    shift: ClassVar[float] = 1.0


def _logged(state: _State) -> float:
    """Return the root mean square of the logged errors; 0 without any."""
    return math.sqrt(state.squares / state.errors) if state.errors else 0.0


def _unknown(recent: _Means) -> float:
    """Return what the noise is taken for where no error was logged; 0 (no verdict) under six evals."""
    return from_curve(recent) * (1 + _CAUTION / len(recent)) if len(recent) >= _FEWEST else 0.0


def _with(state: _State, point: Eval, mode: Mode) -> _State:
    score = point.score if mode is Mode.MAX else -point.score
    recent = (*state.recent[-(_KEPT - 1) :], score)
    means = window_means(recent)
    before = state.bests[0] if state.bests else ()
    bests = (_best_of(before, means), *state.bests[:_LONGEST])
    error = point.stderr
    if error is None or not is_score(error) or error <= 0:
        return _State(state.seen + 1, recent, means, bests, state.squares, state.errors)
    return _State(state.seen + 1, recent, means, bests, state.squares + error * error, state.errors + 1)


def window_means(recent: _Means) -> _Means:
    """Return the means of the last 1, 2, ... up to 6 scores, as far as there are so many."""
    means: list[float] = []
    total = 0.0
    for length, score in enumerate(reversed(recent[-_LONGEST:]), 1):
        total += score
        means.append(total / length)
    return tuple(means)


def _best_of(before: _Means, now: _Means) -> _Means:
    return (*map(max, before, now), *now[len(before) :])


def _fall(state: _State, shortest: int) -> tuple[float, int]:
    """Return the largest fall to the last window, in units of the score over its weight, and that window's length."""
    fall, window = -math.inf, shortest
    for last, mean in enumerate(state.means, 1):
        if last < shortest or last >= len(state.bests):
            continue
        earlier = state.bests[last][shortest - 1 :]
        weights = _WEIGHTS[last - 1][shortest - 1 :]
        found = max(map(mul, map(sub, earlier, repeat(mean)), weights), default=-math.inf)
        if found > fall:
            fall, window = found, last
    return fall, window
