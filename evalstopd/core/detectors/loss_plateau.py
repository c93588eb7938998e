"""LossPlateau: stop when the training loss has flattened, blind to the eval score."""

from dataclasses import dataclass
from typing import NamedTuple

from evalstopd.core.detectors.verdict import KEEP_GOING, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView


class _State(NamedTuple):
    """The losses so far; a longer state appends to the list of the shorter, which looks at its own `seen` only."""

    losses: list[float]
    seen: int = 0


@dataclass(frozen=True, slots=True)
class LossPlateau(Detector):
    """Stop when the training loss fell by less than `min_gain` over the last `window` evals.

    The paper's competitor; `min_gain`, in units of the loss, is fitted to its recall. An eval without a
    loss neither counts nor resets.
    """

    window: int = 2
    min_gain: float = 0.0105

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"loss-plateau: window must be at least 1, not {self.window}")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        return f"loss-plateau:window={self.window},min_gain={self.min_gain:g}"

    def start(self, job: JobView) -> _State:
        """Return the losses seen before the first eval: none."""
        del job
        return _State([])

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: the losses so far and the verdict after it."""
        if point.loss is None:
            return state, KEEP_GOING
        losses = state.losses if len(state.losses) == state.seen else state.losses[: state.seen]
        losses.append(point.loss)
        state = _State(losses, state.seen + 1)
        if state.seen <= self.window or losses[-1 - self.window] - losses[-1] >= self.min_gain:
            return state, KEEP_GOING
        return state, Stop(f"the training loss fell by less than {self.min_gain:g} over {self.window} evals")
