"""From a preset and a seed to jobs with their hidden truth, one at a time: a million jobs fit in little memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import exp, inf, log, sqrt
from typing import NamedTuple

from evalstopd.errors import WrongUsage
from evalstopd_sim.curves import Fate, Table, clip, table
from evalstopd_sim.presets import HOUR_S, Kind, Preset
from evalstopd_sim.streams import Draw, Stream, stream
from evalstopd_sim.truth import RLHF, TrueJob


class Outline(NamedTuple):
    """A job before its hidden truth is dealt: what a trace tells of it. None: to be drawn."""

    job_id: str
    submit_s: float
    gpus: int | None = None
    duration_s: float | None = None
    estimate_s: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A preset for a cluster of `gpus` GPUs. Same seed, same jobs."""

    preset: Preset
    gpus: int
    seed: int

    def jobs(self, count: int) -> Iterator[TrueJob]:
        """Yield `count` jobs in order of submission."""
        return self.dress(self._arrivals(count))

    def dress(self, outlines: Iterator[Outline]) -> Iterator[TrueJob]:
        """Yield the outlined jobs with kinds, curves, labels and whatever the outline leaves open."""
        dealer = _Dealer(self.preset, self.seed)
        return map(dealer.deal, outlines)

    def _arrivals(self, count: int) -> Iterator[Outline]:
        largest = max(max(kind.gpus) for kind in self.preset.kinds)
        if largest > self.gpus:
            raise WrongUsage(f"preset {self.preset.name} has jobs of {largest} GPUs, the cluster has {self.gpus}")
        draws = stream(self.seed, Draw.ARRIVALS)
        rate = self.preset.load * self.gpus / _mean_gpu_s(self.preset)
        now_s = 0.0
        for index in range(count):
            now_s += draws.expovariate(rate)
            yield Outline(f"{index:07d}", now_s)


def _mean_gpu_s(preset: Preset) -> float:
    return sum(k.share * k.mean_h * HOUR_S * sum(k.gpus) / len(k.gpus) for k in preset.kinds)


class _Noisy(NamedTuple):
    marks: tuple[float, ...]
    levels: tuple[float, ...]
    scores: tuple[float, ...]
    sigma: float


@dataclass(slots=True)
class _Dealer:
    """Draws the same number of values for every job, so that what one choice changes leaves the rest alone."""

    preset: Preset
    seed: int
    draws: Stream = field(init=False)
    noise: Stream = field(init=False)
    cancels: Stream = field(init=False)
    tables: dict[int, Table] = field(init=False)
    spread: float = field(init=False)

    def __post_init__(self) -> None:
        make = partial(stream, self.seed)
        self.draws, self.noise, self.cancels = make(Draw.JOBS), make(Draw.NOISE), make(Draw.CANCELS)
        self.tables = {n: table(self.preset.level, n) for n in self.preset.evals}
        self.spread = sqrt(log(1 + self.preset.cv**2))  # of a lognormal with this coefficient of variation

    def deal(self, outline: Outline) -> TrueJob:
        preset, unit, normal = self.preset, self.draws.random, self.draws.gauss
        kind = _kind(preset.kinds, unit())
        asked = kind.gpus[int(unit() * len(kind.gpus))]
        hacks = unit() < preset.hacking and kind.name == RLHF
        peak, depth = quantile(preset.peak, unit()), quantile(preset.depth, unit())
        calm = quantile(preset.healthy_depth, unit())
        drawn_s = kind.mean_h * HOUR_S * exp(self.spread * normal(0.0, 1.0) - self.spread**2 / 2)
        error = normal(0.0, 1.0)
        rate, scaling = quantile(preset.loss_rate, unit()), 0.02 + 0.08 * unit()
        count = preset.evals[int(unit() * len(preset.evals))]
        sigma = quantile(preset.noise.quantiles, unit())
        duration_s = drawn_s if outline.duration_s is None else outline.duration_s
        fate = Fate(peak, depth) if hacks else Fate(None, calm)
        evals = self._evals(kind, fate, duration_s, count, sigma)
        return TrueJob(
            outline.job_id,
            kind.name,
            outline.submit_s,
            asked if outline.gpus is None else outline.gpus,
            duration_s,
            outline.estimate_s or duration_s * exp((preset.estimate_sd or 0.0) * error),
            evals.marks,
            evals.scores,
            evals.levels,
            evals.sigma,
            rate,
            hacks,
            peak * duration_s if hacks else inf,
            self._cancel_s(duration_s),
            scaling,
        )

    def _evals(self, kind: Kind, fate: Fate, duration_s: float, count: int, sigma: float) -> _Noisy:
        marks, levels = self._curve(fate, duration_s, count)
        if kind.name != RLHF:
            return _Noisy(marks, levels, levels, sigma)
        gauss = self.noise.gauss
        return _Noisy(marks, levels, tuple([clip(level + gauss(0.0, sigma)) for level in levels]), sigma)

    def _curve(self, fate: Fate, duration_s: float, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return when the job's evals come, and their levels."""
        every_s = self.preset.every_s
        if every_s is None:
            equal = self.tables[count]
            return tuple([duration_s * p for p in equal.shares]), equal.levels(fate)
        marks = tuple(every_s * i for i in range(1, int(duration_s / every_s) + 1))
        return marks, tuple(self.preset.level(mark / duration_s, fate) for mark in marks)

    def _cancel_s(self, duration_s: float) -> float:
        """Draw whether and when the owner cancels the job by hand: at a uniform share of its work."""
        if not self.preset.cancelled:
            return inf
        happens, share = self.cancels.random(), self.cancels.random()
        return share * duration_s if happens < cancel_odds(self.preset.cancelled) else inf


def cancel_odds(share: float) -> float:
    """Return the share of jobs to cancel so that `share` of all GPU time is that of cancelled jobs.

    A cancelled job uses half of its time on average: s = (q / 2) / (q / 2 + 1 - q), solved for q.
    """
    return share / (0.5 + 0.5 * share)


def quantile(values: tuple[float, ...], p: float) -> float:
    """Return the value at p of a distribution given by quantiles at equal distances."""
    if len(values) == 1:
        return values[0]
    at = p * (len(values) - 1)
    low = int(at)
    return values[low] + (values[low + 1] - values[low]) * (at - low)


def _kind(kinds: tuple[Kind, ...], p: float) -> Kind:
    for kind in kinds:
        p -= kind.share
        if p < 0:
            return kind
    return kinds[-1]
