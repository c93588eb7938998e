"""Classic early stopping: give up after a number of evals without a new best."""

from dataclasses import dataclass

from evalstopd.core.curve import is_score
from evalstopd.core.detectors.verdict import KEEP_GOING, Declining, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView, Mode

_State = tuple[float | None, int]


@dataclass(frozen=True, slots=True)
class Patience(Detector):
    """Stop after `patience` evals in a row that are not better than the best by more than `min_delta`.

    The semantics of Keras' EarlyStopping and the Hugging Face Trainer's EarlyStoppingCallback, where the
    best to beat is the last one that counted as better.
    """

    patience: int = 3
    mode: Mode = Mode.MAX
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError(f"patience: patience must be at least 1, not {self.patience}")
        if not 0 <= self.min_delta < float("inf"):
            raise ValueError(f"patience: min_delta must be finite and not negative, not {self.min_delta:g}")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        margin = f",min_delta={self.min_delta:g}" if self.min_delta else ""
        return f"patience:patience={self.patience}{margin}"

    def start(self, job: JobView) -> _State:
        """Return the state before the first eval: no best, no wait."""
        del job
        return (None, 0)

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: (best that counted, evals since) and the verdict after it."""
        best, waited = state
        if not is_score(point.score):
            return state, self._verdict(waited)
        if best is None or self._gain(best, point.score) > self.min_delta:
            return (point.score, 0), KEEP_GOING
        return (best, waited + 1), self._verdict(waited + 1)

    def _gain(self, best: float, score: float) -> float:
        return score - best if self.mode is Mode.MAX else best - score

    def _verdict(self, waited: int) -> Verdict:
        if waited >= self.patience:
            return Stop(f"no better eval score for {waited} evals", waited)
        return Declining(waited, self.patience) if waited else KEEP_GOING
