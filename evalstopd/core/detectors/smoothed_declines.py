"""The paper's rule made less nervous: declines of a smoothed score that add up to more than the run's noise."""

from dataclasses import dataclass

from evalstopd.core.curve import is_score
from evalstopd.core.detectors.verdict import KEEP_GOING, Declining, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView, Mode
from evalstopd.core.noise import from_curve

_KEPT = 24
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class _State:
    """`recent`: the last 24 scores as they came; `smooth`, `best`: the smoothed score now and at its best."""

    recent: tuple[float, ...] = ()
    smooth: float = 0.0
    best: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class SmoothedDeclines(Detector):
    """Stop when the smoothed score fell k times in a row and lies below its best by more than its noise explains.

    The smoothed score is an exponential moving average with weight `ema` for the newest eval (1: none). A fall
    counts if it is larger than `min_delta` (unit of the score); the distance to the best must exceed `noise` times
    the run's noise, estimated from its last 24 evals; where it is asked for, there is no verdict before 4 evals.
    Source: docs/rules.md (own work), after the paper's k declines.
    """

    k: int = 2
    ema: float = 0.5
    noise: float = 3.0
    min_delta: float = 0.0
    mode: Mode = Mode.MAX

    def __post_init__(self) -> None:
        if self.k < 1 or not 0 < self.ema <= 1:
            raise ValueError("smoothed-declines: k of 1 or more and ema in (0, 1] are needed")
        if not 0 <= self.noise < float("inf") or not 0 <= self.min_delta < float("inf"):
            raise ValueError("smoothed-declines: noise and min_delta must be finite and not negative")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        return f"smoothed-declines:k={self.k},ema={self.ema:g},noise={self.noise:g},min_delta={self.min_delta:g}"

    def start(self, job: JobView) -> _State:
        """Return the state before the first eval."""
        del job
        return _State()

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: the smoothed score and the verdict on it."""
        if not is_score(point.score):
            return state, self._verdict(state)
        state = self._after(state, point.score if self.mode is Mode.MAX else -point.score)
        return state, self._verdict(state)

    def _after(self, state: _State, score: float) -> _State:
        if not state.recent:
            return _State((score,), score, score)
        smooth = self.ema * score + (1 - self.ema) * state.smooth
        fell = state.smooth - smooth > self.min_delta
        recent = (*state.recent[-(_KEPT - 1) :], score)
        return _State(recent, smooth, max(state.best, smooth), state.count + 1 if fell else 0)

    def _verdict(self, state: _State) -> Verdict:
        if self.noise and len(state.recent) < _FEWEST:
            return KEEP_GOING
        if state.count >= self.k and state.best - state.smooth > self.noise * from_curve(state.recent):
            verb = "fell" if self.mode is Mode.MAX else "rose"
            reason = (
                f"the smoothed score {verb} {state.count} times in a row, by more than {self.noise:g} times its noise"
            )
            return Stop(reason, state.count)
        count = min(state.count, self.k - 1)
        return Declining(count, self.k) if count else KEEP_GOING
