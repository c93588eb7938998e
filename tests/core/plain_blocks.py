"""The rule of blocks as its words say it, over all scores at each eval: quadratic, to hold the quick one against."""

import math
from operator import add
from typing import NamedTuple

from evalstopd.core.curve import is_score
from evalstopd.core.detectors import KEEP_GOING, Declining, Stop, Verdict
from evalstopd.core.detectors.blocks import Blocks, best_stretch, block_size
from evalstopd.core.model import Eval, JobView, Mode


class Scores(NamedTuple):
    """All scores so far, turned so that more is better; sum of squares and number of the standard errors logged."""

    scores: tuple[float, ...] = ()
    squares: float = 0.0
    errors: int = 0


class PlainBlocks(Blocks):
    """The same rule; only margins and words are taken from the quick one."""

    def start(self, job: JobView) -> Scores:  # type: ignore[override]
        """Return the state before the first eval."""
        del job
        return Scores()

    def step(self, state: Scores, point: Eval) -> tuple[Scores, Verdict]:  # type: ignore[override]
        """Take one eval: all scores so far and the verdict on them."""
        state = self.take(state, point)
        return state, self._on_all(state)

    def take(self, state: Scores, point: Eval) -> Scores:  # type: ignore[override]
        """Take one eval: all scores so far."""
        if not is_score(point.score):
            return state
        scores = (*state.scores, point.score if self.mode is Mode.MAX else -point.score)
        error = point.stderr
        if error is None or not is_score(error) or error <= 0:
            return Scores(scores, state.squares, state.errors)
        return Scores(scores, state.squares + error * error, state.errors + 1)

    def _on_all(self, state: Scores) -> Verdict:
        scores, count = state.scores, len(state.scores)
        size, at_best = block_size(count), bool(scores) and scores[-1] >= max(scores)
        if count < 6 or (size == 1 and at_best):
            return KEEP_GOING
        fine = block_means(scores, max(1, size // 2))
        blocks = fine if size == 1 else pairs(fine)
        best, factor = best_stretch(blocks), self._factor(count) * (1 + self.caution / len(blocks))
        logged = math.sqrt(state.squares / state.errors / size) if state.errors else 0.0
        if blocks[-1] > best - (self.slow or 1.0) * factor * logged:
            return KEEP_GOING
        noise = max(self._shown(blocks), logged)
        found = self._judged(blocks, best, factor * noise)
        if found is not None and size > 1:
            noise = max(noise, self._unfloored(fine) / math.sqrt(2))
            found = self._judged(blocks, best, factor * noise)
        if found is None:
            return KEEP_GOING
        low, (of, part) = found
        if low < of:
            return Declining(low * size, of * size, size)
        stop = Stop(self._reason((of, size), part * factor * noise, noise, best), of * size)
        return KEEP_GOING if at_best else stop


def block_means(scores: tuple[float, ...], size: int) -> list[float]:
    """Return the means of equal blocks, aligned to the newest score; the oldest remainder is dropped."""
    sums = list(scores[len(scores) % size :])
    width = 1
    while width < size:
        sums = list(map(add, sums[::2], sums[1::2]))
        width *= 2
    return [total / size for total in sums] if size > 1 else sums


def pairs(halves: list[float]) -> list[float]:
    """Return blocks from blocks half as long; an odd one is the oldest and is dropped."""
    odd = len(halves) % 2
    return [(a + b) / 2 for a, b in zip(halves[odd::2], halves[odd + 1 :: 2], strict=True)]
