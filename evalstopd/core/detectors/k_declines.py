"""The paper's rule: stop after k successive declines of the eval score."""

from dataclasses import dataclass

from evalstopd.core.curve import is_score
from evalstopd.core.detectors.verdict import KEEP_GOING, Declining, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView, Mode

_State = tuple[float | None, int]


@dataclass(frozen=True, slots=True)
class KDeclines(Detector):
    """Stop when each of the last `k` evals scored lower than the one before it by more than `min_delta`.

    Source: the paper, decline detector (k = 2 found best). With `mode` min, "lower" reads "higher". A tie or
    a rise resets; a missing, NaN or infinite score neither counts nor resets. `min_delta` is in units of the
    score. On a flat stretch of any i.i.d. continuous noise it fires after 2.718 / 7.924 / 29.98 evals on
    average for k = 1 / 2 / 3, whatever the noise: read README, "What the rule cannot do".
    """

    k: int = 2
    mode: Mode = Mode.MAX
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k-declines: k must be at least 1, not {self.k}")
        if not 0 <= self.min_delta < float("inf"):
            raise ValueError(f"k-declines: min_delta must be finite and not negative, not {self.min_delta}")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        margin = f",min_delta={self.min_delta:g}" if self.min_delta else ""
        return f"k-declines:k={self.k}{margin}"

    def start(self, job: JobView) -> _State:
        """Return the state before the first eval."""
        del job
        return (None, 0)

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: (previous score, declines so far) and the verdict after it."""
        previous, count = state
        if not is_score(point.score):
            return state, self._verdict(count)
        if previous is None or self._loss(previous, point.score) <= self.min_delta:
            return (point.score, 0), KEEP_GOING
        return (point.score, count + 1), self._verdict(count + 1)

    def _loss(self, previous: float, score: float) -> float:
        return previous - score if self.mode is Mode.MAX else score - previous

    def _verdict(self, count: int) -> Verdict:
        if count >= self.k:
            return Stop(self._reason(count), count)
        return Declining(count, self.k) if count else KEEP_GOING

    def _reason(self, count: int) -> str:
        direction = "fell" if self.mode is Mode.MAX else "rose"
        margin = f" by more than {self.min_delta:g} each" if self.min_delta else ""
        return f"the eval score {direction} {count} times in a row{margin}"
