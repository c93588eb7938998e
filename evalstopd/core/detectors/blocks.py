"""The rule that looks for persistence: three blocks in a row below the best stretch by more than the run's noise."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import add
from typing import NamedTuple

from evalstopd.core.curve import is_score
from evalstopd.core.detectors.verdict import KEEP_GOING, Declining, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView, Mode
from evalstopd.core.noise import from_bends, from_curve, unfloored, unfloored_bends

_SQRT2 = math.sqrt(2)
_MOST_BLOCKS = 24
_QUICK, _SLOW = 3, 6
_FIRST_VERDICT = 6
_CAUTION = 12.0
_GROWS_AFTER = 20


class _State(NamedTuple):
    """Scores so far, turned so that more is better; sum of squares and number of the standard errors logged.

    `sums[j]` has the sum of each 2^j scores in a row, by the place of the first: `sums[0]` the scores themselves,
    `sums[-1]` those of whole blocks. One more score takes one addition for each list, and no copy: a longer state
    appends to the lists of the shorter, which looks at its own `seen` scores only. `size` is the block size, `top`
    the best score.
    """

    sums: tuple[list[float], ...]
    seen: int = 0
    size: int = 1
    top: float = -math.inf
    squares: float = 0.0
    errors: int = 0

    @property
    def at_best(self) -> bool:
        """Tell whether the newest score is as good as any before."""
        return self.sums[0][self.seen - 1] >= self.top


@dataclass(frozen=True, slots=True)
class Blocks(Detector):
    """Stop when each of the last three blocks of evals lies below the best stretch by more than the noise explains.

    The run is averaged into at most 24 equal blocks (of 1, 2, 4, ... evals) that end at the newest eval; the best
    stretch is the highest mean of up to three blocks in a row; the margin is c (1 + 12 / blocks) times the noise
    of a block, for a noise that was estimated from few blocks is not to be trusted. The noise is the largest of
    what the blocks' second differences say, those of blocks half as long, and the standard errors logged with the
    evals. Up to 20
    evals the factor is `c`; after that c (1 + growth ln(evals / 20)), so that a long run is not stopped by the
    mere number of looks. No verdict before 6 evals. No units: `c` is in multiples of the run's own noise.
    Variants that were tried: `caution` in place of 12; `slow` above 0, with which six low blocks in a row need only
    that part of the margin; `plain` 1, with which the second differences' own size stands for their spread.

    Source: docs/rules.md, "blocks" (own work; persistence is what real curves reward, not single dips).
    """

    c: float = 1.75
    growth: float = 0.0
    caution: float = _CAUTION
    slow: float = 0.0
    plain: int = 0
    mode: Mode = Mode.MAX

    def __post_init__(self) -> None:
        if not 0 < self.c < math.inf or not 0 <= self.growth < math.inf:
            raise ValueError(f"{self._name}: c above 0 and growth of 0 or more are needed")
        if not 0 <= self.caution < math.inf or not 0 <= self.slow <= 1 or self.plain not in (0, 1):
            raise ValueError(f"{self._name}: caution of 0 or more, slow in [0, 1] and plain of 0 or 1 are needed")

    @property
    def _name(self) -> str:
        return "blocks"

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        variant = (("caution", self.caution, _CAUTION), ("slow", self.slow, 0), ("plain", self.plain, 0))
        changed = "".join(f",{name}={value:g}" for name, value, usual in variant if value != usual)
        return f"{self._name}:c={self.c:g},growth={self.growth:g}{changed}"

    def start(self, job: JobView) -> _State:
        """Return the state before the first eval."""
        del job
        return _State(([],))

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: the scores so far and the verdict on them."""
        state = self.take(state, point)
        return state, self._verdict(state)

    def take(self, state: _State, point: Eval) -> _State:
        """Take one eval: the scores so far, on which the verdict depends alone."""
        return _with(state, point, self.mode) if is_score(point.score) else state

    def _verdict(self, state: _State) -> Verdict:
        count, size = state.seen, state.size
        # Most evals of a run that gets better are its best: that is seen at a tenth of the price.
        if count < _FIRST_VERDICT or (size == 1 and state.at_best):
            return KEEP_GOING
        # Sums in place of means, here and below: a block's size is a power of two, by which nothing is rounded.
        blocks = _blocks(state, size)
        best, factor = best_stretch(blocks), self._factor(count) * (1 + self.caution / len(blocks))
        logged = _logged(state, size)
        if blocks[-1] > best - (self.slow or 1.0) * factor * logged:
            # The noise is not smaller than what was logged, so that the newest block is not low.
            return KEEP_GOING
        noise = max(self._shown(blocks), logged)
        found = self._judged(blocks, best, factor * noise)
        if found is not None and size > 1:
            noise = max(noise, self._unfloored(_blocks(state, size // 2)) / _SQRT2 * 2)
            found = self._judged(blocks, best, factor * noise)
        if found is None:
            return KEEP_GOING
        low, (of, part) = found
        if low >= of:
            # A block of several evals may be low although the newest is as good as any before.
            if state.at_best:
                return KEEP_GOING
            return Stop(self._reason((of, size), part * factor * noise / size, noise / size, best / size), of * size)
        return Declining(low * size, of * size, size)

    def _judged(self, blocks: list[float], best: float, margin: float) -> tuple[int, tuple[int, float]] | None:
        """Return how many of the last blocks are low, by the pair that is nearest to stopping the run; None: none."""
        low = _low_blocks(blocks, best, margin, _QUICK)
        if self.slow and low < _QUICK:
            slowly = _low_blocks(blocks, best, self.slow * margin, _SLOW)
            if slowly * _QUICK > low * _SLOW:
                return slowly, (_SLOW, self.slow)
        return (low, (_QUICK, 1.0)) if low else None

    def _shown(self, blocks: list[float]) -> float:
        return from_bends(blocks) if self.plain else from_curve(blocks)

    def _unfloored(self, blocks: list[float]) -> float:
        return unfloored_bends(blocks) if self.plain else unfloored(blocks)

    def _factor(self, count: int) -> float:
        if count <= _GROWS_AFTER:
            return self.c
        return self.c * (1 + self.growth * math.log(count / _GROWS_AFTER))

    def _reason(self, of: tuple[int, int], margin: float, noise: float, best: float) -> str:
        side = "below" if self.mode is Mode.MAX else "above"
        shown = best if self.mode is Mode.MAX else -best
        count, size = of
        stretch = f"each of the last {count} " + ("evals" if size == 1 else f"means of {size} evals")
        return f"{stretch} lies {side} the best stretch ({shown:.6g}) by more than {margin:.3g} (noise {noise:.3g})"


def block_size(count: int, size: int = 1) -> int:
    """Return the smallest power of two, from `size` on, that leaves at most 24 blocks of so many evals."""
    while count // size > _MOST_BLOCKS:
        size *= 2
    return size


def _blocks(state: _State, size: int) -> list[float]:
    """Return the sums of equal blocks, aligned to the newest score; the oldest remainder is dropped."""
    return state.sums[size.bit_length() - 1][state.seen % size : state.seen - size + 1 : size]


def best_stretch(blocks: list[float]) -> float:
    """Return the highest trailing mean of up to three blocks."""
    threes: Iterator[float] = map(add, map(add, blocks, blocks[1:]), blocks[2:])
    return max(blocks[0], (blocks[0] + blocks[1]) / 2, max(threes) / 3)


def _low_blocks(blocks: list[float], best: float, margin: float, most: int) -> int:
    """Return how many of the newest blocks, up to `most`, lie below the best stretch by the margin; 0 without one."""
    count = 0
    for block in reversed(blocks[-most:]):
        if margin <= 0 or block > best - margin:
            break
        count += 1
    return count


def _with(state: _State, point: Eval, mode: Mode) -> _State:
    score = point.score if mode is Mode.MAX else -point.score
    seen, top = state.seen + 1, max(state.top, score)
    size = block_size(seen, state.size)
    sums = _longer(state, score, size)
    error = point.stderr
    if error is None or not is_score(error) or error <= 0:
        return _State(sums, seen, size, top, state.squares, state.errors)
    return _State(sums, seen, size, top, state.squares + error * error, state.errors + 1)


def _longer(state: _State, score: float, size: int) -> tuple[list[float], ...]:
    """Return the sums with one more score, up to those of a block of `size`."""
    sums = state.sums if len(state.sums[0]) == state.seen else _own(state)
    sums[0].append(score)
    width = 1
    for halves, wholes in pairwise(sums):
        wholes.append(halves[-1 - width] + halves[-1])
        width *= 2
    return sums if size == width else (*sums, list(map(add, sums[-1], sums[-1][width:])))


def _own(state: _State) -> tuple[list[float], ...]:
    """Return a copy of the sums of a state from which another one has gone on."""
    return tuple(each[: state.seen + 1 - (1 << place)] for place, each in enumerate(state.sums))


def _logged(state: _State, size: int) -> float:
    """Return the standard error of a block's sum of so many evals, as far as it was logged with them."""
    return math.sqrt(state.squares / state.errors / size) * size if state.errors else 0.0
