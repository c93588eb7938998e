"""The rule with a proof: however long a run is watched, its chance of a false stop is at most alpha."""

# ruff: noqa: FURB136  calls of min() would cost half as much as all the rest of a step

import math
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from operator import itemgetter
from typing import NamedTuple

from evalstopd.core.curve import is_score
from evalstopd.core.detectors.verdict import KEEP_GOING, Declining, Detector, Stop, Verdict
from evalstopd.core.model import Eval, JobView, Mode

_DISTANCES = (1, 2, 4)
_EDGE = 1e-3
_TENTHS = 10
# Beyond this no gain changes anything, and a far larger one could not be held.
_MOST = 500.0


class _Bet(NamedTuple):
    """A bet on the mean being beyond a level: the log of its gain for a score of 1 and for a score of 0."""

    one: float
    zero: float


class _Level(NamedTuple):
    """A level of the score, with bets that the mean is above it and bets that it is below."""

    at: float
    above: tuple[_Bet, _Bet, _Bet]
    below: tuple[_Bet, _Bet, _Bet]


# What the bets at one level have won, a plain tuple, for up to 24 are made an eval: whether the level is proven to have
# been exceeded (the bets are that the mean was above it, and from then on that it is below), the evals since, and what
# each of the three bets has won.
_Capital = tuple[bool, int, float, float, float]
_NEW: _Capital = (False, 0, 0.0, 0.0, 0.0)
_PROVEN: _Capital = (True, 0, 0.0, 0.0, 0.0)
_State = tuple[_Capital, ...] | None


@dataclass(frozen=True, slots=True)
class Guaranteed(Detector):
    """Stop once it is proven, at error alpha over the whole run, that the score's true mean has fallen.

    Null: each score is the mean of `items` scores in [low, high], independent given the past, and its mean given
    the past never falls from one eval to the next. Where that holds, P(ever stopped) <= alpha, however many evals
    come and however they are distributed. It does not hold for noise that carries over between evals.

    How: at each of a fixed number of levels m two e-processes run one after the other. The first bets that the mean
    is above m; when it reaches 2 levels / alpha, m counts as exceeded, and the second bets from there on that the
    mean is below m; when that reaches the same, the run is stopped. Under the null one of the two is wrong at
    each level, and a wrong one gets there with probability at most alpha / (2 levels) (Ville 1939). A bet is the
    likelihood ratio of a binomial share, a valid one for every distribution on [low, high] (Hoeffding 1963;
    Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting); bets start anew at each
    eval with weights 1 / (n (n + 1)) (Shin, Ramdas and Rinaldo 2024, E-detectors: a nonparametric framework for
    sequential change detection).

    A score outside [low, high] breaks the null: the rule then never stops that run. With `items` = 1 it is right
    for any bounded score, and has hardly any power on runs of a few dozen evals. Cost per eval: up to 72 exponentials.
    """

    alpha: float = 0.05
    items: int = 1
    low: float = 0.0
    high: float = 1.0
    mode: Mode = Mode.MAX

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1 or self.items < 1 or not -math.inf < self.low < self.high < math.inf:
            raise ValueError("guaranteed: alpha in (0, 1), items of 1 or more and low below high are needed")

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        return f"guaranteed:alpha={self.alpha:g},items={self.items},low={self.low:g},high={self.high:g}"

    def start(self, job: JobView) -> _State:
        """Return the state before the first eval."""
        del job
        return (_NEW,) * len(levels(self.items))

    def step(self, state: _State, point: Eval) -> tuple[_State, Verdict]:
        """Take one eval: the capital at each level and the verdict."""
        state = self.take(state, point)
        return state, self._verdict(state)

    def take(self, state: _State, point: Eval) -> _State:
        """Take one eval without asking for the verdict."""
        if state is None or not is_score(point.score):
            return state
        share = (point.score - self.low) / (self.high - self.low)
        share = share if self.mode is Mode.MAX else 1 - share
        if not 0 <= share <= 1:
            return None
        items, needed = self.items, self._needed
        return tuple(
            [_after(capital, level, share, items, needed) for capital, level in zip(state, levels(items), strict=True)]
        )

    @property
    def _needed(self) -> float:
        return 2 * len(levels(self.items)) / self.alpha

    def _verdict(self, state: _State) -> Verdict:
        exceeded = [(_evidence(each), each) for each in state or () if each[0]]
        if not exceeded:
            return KEEP_GOING
        evidence, (_, evals, *_) = max(exceeded, key=itemgetter(0))
        if evidence >= self._needed:
            verb = "fallen" if self.mode is Mode.MAX else "risen"
            return Stop(f"it is proven at error {self.alpha:g} that the score's mean has {verb}", evals)
        tenths = int(_TENTHS * math.log(max(1.0, evidence)) / math.log(self._needed))
        return Declining(tenths, _TENTHS) if tenths else KEEP_GOING


@lru_cache(maxsize=64)
def levels(items: int) -> tuple[_Level, ...]:
    """Return the levels for scores of so many items: the finer the score, the closer they lie, at most 24."""
    count = min(24, max(6, round(1.5 * math.sqrt(items))))
    gap = 1 / (count + 1)
    return tuple(_level(i * gap, gap) for i in range(1, count + 1))


def _level(at: float, gap: float) -> _Level:
    near, middle, far = _DISTANCES

    def above(distance: int) -> _Bet:
        return _bet(at, min(1 - _EDGE, at + gap * distance))

    def below(distance: int) -> _Bet:
        return _bet(at, max(_EDGE, at - gap * distance))

    return _Level(at, (above(near), above(middle), above(far)), (below(near), below(middle), below(far)))


def _bet(level: float, mean: float) -> _Bet:
    return _Bet(math.log(mean / level), math.log((1 - mean) / (1 - level)))


def _evidence(capital: _Capital) -> float:
    """Return the e-value: the mean over the bets, with what is still kept for later starts."""
    _, evals, near, middle, far = capital
    return (near + middle + far) / len(_DISTANCES) + 1 / (evals + 1)


def _after(capital: _Capital, level: _Level, share: float, items: int, needed: float) -> _Capital:
    """Return the capital after one eval, bet by bet: of a long run this is what the rule costs."""
    proven, evals, near, middle, far = capital
    (one, zero), (one_2, zero_2), (one_4, zero_4) = level[2] if proven else level[1]
    evals, rest, most = evals + 1, 1 - share, needed * 3
    fresh = 1 / (evals * (evals + 1))
    x = items * (share * one + rest * zero)
    near = (near + fresh) * exp(x if x < _MOST else _MOST)
    x = items * (share * one_2 + rest * zero_2)
    middle = (middle + fresh) * exp(x if x < _MOST else _MOST)
    x = items * (share * one_4 + rest * zero_4)
    far = (far + fresh) * exp(x if x < _MOST else _MOST)
    near, middle = near if near < most else most, middle if middle < most else most
    grown = (proven, evals, near, middle, far if far < most else most)
    return _PROVEN if not proven and _evidence(grown) >= needed else grown
