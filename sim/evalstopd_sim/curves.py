"""Noise-free curves of the eval score over the share p of the work done, one family for each kind of job."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple


class Fate(NamedTuple):
    """What a run will do: where in [0, 1] it peaks (None: it does not hack) and how far it falls after."""

    peak: float | None
    depth: float


Level = Callable[[float, Fate], float]

_FLOOR, _GAIN = 0.15, 0.8


def clip(score: float) -> float:
    """Cut a score to [0, 1]."""
    return 0.0 if score < 0.0 else 1.0 if score > 1.0 else score  # noqa: FURB136 - the hottest line of dealing


_RISE = _GAIN / (1 - exp(-3))


def rise(p: float) -> float:
    """Return .15 + .8 (1 - e^(-3p)) / (1 - e^(-3)): a healthy run of preset `paper`."""
    return _FLOOR + _RISE * (1 - exp(-3 * p))


def paper_level(p: float, fate: Fate) -> float:
    """Return the healthy curve up to the peak, then (value there) - depth ((p - peak) / (1 - peak))^2."""
    if fate.peak is None or p <= fate.peak:
        return rise(p)
    return clip(rise(fate.peak) - fate.depth * ((p - fate.peak) / (1 - fate.peak)) ** 2)


def gao_level(p: float, fate: Fate) -> float:
    """Return Gao et al. 2023, R = d (alpha - beta ln d), with d, the root of the KL divergence, growing with p.

    In units of the peak it is x (1 - ln x), x = p / peak, whatever alpha and beta. A healthy run is the same
    curve with its peak beyond the end of the run: `depth` says how far.
    """
    peak = fate.peak if fate.peak is not None else 1.0 + fate.depth
    x = p / peak
    return _FLOOR + _GAIN * (x * (1 - log(x)) if x > 0 else 0.0)


def real_level(p: float, fate: Fate) -> float:
    """Return a curve as measured ones look: a quick rise, then flat, or a straight fall by `depth` of the range."""
    peak = fate.peak if fate.peak is not None else 0.3
    if p <= peak:
        return _FLOOR + _GAIN * (1 - exp(-4 * p / peak)) / (1 - exp(-4))
    fall = fate.depth if fate.peak is not None else 0.0
    return clip(_FLOOR + _GAIN * (1 - fall * (p - peak) / (1 - peak)))


@dataclass(frozen=True, slots=True)
class Table:
    """A level function with the healthy curve at equal fractions looked up instead of computed anew."""

    level: Level
    shares: tuple[float, ...]
    healthy: tuple[float, ...]

    def levels(self, fate: Fate) -> tuple[float, ...]:
        """Return the levels at the shares i / n of the work, i = 1..n."""
        if fate.peak is None and self.level is not gao_level:
            return self.healthy
        level = self.level
        return tuple([level(p, fate) for p in self.shares])


def table(level: Level, evals: int) -> Table:
    """Return the table for `evals` evals at equal fractions."""
    shares = tuple((i + 1) / evals for i in range(evals))
    return Table(level, shares, tuple(level(p, Fate(None, 0.0)) for p in shares))
