"""One checkpoint as a rule would see it, and beside it what it was really worth."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`score` is the mean over few items and what a rule sees; `truth` that over many others, near the expected score.

    `stderr` and `truth_stderr` are the standard errors of the two, all in the unit of the score.
    """

    step: int
    score: float
    stderr: float
    truth: float
    truth_stderr: float


class Recipe(Protocol):
    """What can be trained several times over, each run from its own first weights and data."""

    def train(self, seed: int, runs: int) -> Iterator[list[Checkpoint]]:
        """Yield the checkpoints of all runs at each evaluation; the same for the same seed on one machine."""
        ...


def judged(step: int, seen: Tensor, others: Tensor) -> Checkpoint:
    """Return the checkpoint whose few items scored `seen` and whose many others scored `others`."""
    return Checkpoint(step, *_mean(seen), *_mean(others))


def _mean(items: Tensor) -> tuple[float, float]:
    return items.mean().item(), items.std().item() / math.sqrt(len(items))
