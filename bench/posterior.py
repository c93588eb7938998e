"""The posterior label: how likely a curve's level has fallen, by a local-level model with heavy tails.

Level: a random walk whose steps have Student's t with 3 degrees of freedom; scores: the level with t noise of 4.
Both are scale mixtures of Gaussians, so that a Gibbs sampler with a Kalman filter and backward draws reaches the
posterior (Carter and Kohn 1994, Biometrika 81). Many curves are sampled side by side; needs numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalstopd.core.noise import spread

_Array = NDArray[np.float64]
_STEP_FREEDOM, _NOISE_FREEDOM = 3.0, 4.0
_STEP_PRIOR, _NOISE_PRIOR = 0.05, 0.11  # of the 5-95 % range; each weighs as much as two evals
_PRIOR_WEIGHT = 2.0
_FALL, _EARLY = 0.10, 0.80
_BURN_IN = 0.3
DECLINING, HEALTHY = 0.95, 0.5


@dataclass(frozen=True, slots=True)
class Effort:
    """Chains of each curve and sweeps of each chain, of which the first three tenths are thrown away."""

    chains: int = 4
    sweeps: int = 300


USUAL = Effort()


def label_of(chance: float) -> str:
    """Return the label by the probability of a fall: declining above .95, healthy below .5."""
    return "declining" if chance > DECLINING else "healthy" if chance < HEALTHY else "ambiguous"


def chances_of_fall(curves: Sequence[Sequence[float]], seed: int, effort: Effort = USUAL) -> list[float]:
    """Return of each curve (more is better) the probability that its level has fallen for good.

    Fallen: the mean level of the last tenth (two evals at least) lies more than a tenth of the scores' 5-95 % range
    below the best mean of three levels in a row, which lies in the first four fifths. Curves of one length are
    sampled together; a curve without any spread, or of fewer than four scores, has not fallen.
    """
    found = [0.0] * len(curves)
    stream = np.random.default_rng(seed)
    for length in sorted({len(curve) for curve in curves}):
        places = [i for i, curve in enumerate(curves) if len(curve) == length >= 4 and spread(curve) > 0]
        if places:
            chances = _chances(np.array([_scaled(curves[i]) for i in places]), stream, effort)
            for place, chance in zip(places, chances.tolist(), strict=True):
                found[place] = chance
    return found


def _scaled(curve: Sequence[float]) -> list[float]:
    """Return the scores in units of their range, from their mean."""
    middle, whole = sum(curve) / len(curve), spread(curve)
    return [(score - middle) / whole for score in curve]


def _chances(scores: _Array, stream: np.random.Generator, effort: Effort) -> _Array:
    """Return the chance of a fall of each row, the mean over chains and sweeps."""
    scores = np.repeat(scores, effort.chains, axis=0).T  # evals, rows: each step of time is one whole row
    steps = _Tails(np.full(scores.shape[1], _STEP_PRIOR**2), np.ones(scores[1:].shape))
    noises = _Tails(np.full(scores.shape[1], _NOISE_PRIOR**2), np.ones(scores.shape))
    fallen, kept = np.zeros(scores.shape[1]), 0
    for sweep in range(effort.sweeps):
        levels = _levels(scores, steps.variances, noises.variances, stream)
        steps = steps.drawn(np.diff(levels, axis=0), _STEP_FREEDOM, _STEP_PRIOR, stream)
        noises = noises.drawn(scores - levels, _NOISE_FREEDOM, _NOISE_PRIOR, stream)
        if sweep >= _BURN_IN * effort.sweeps:
            fallen += _fallen(levels)
            kept += 1
    chances: _Array = (fallen / kept).reshape(-1, effort.chains).mean(axis=1)
    return chances


@dataclass(frozen=True, slots=True)
class _Tails:
    """The variance of each part: a scale of its row, times a factor that makes Student's t of a Gaussian."""

    scale: _Array
    factors: _Array

    @property
    def variances(self) -> _Array:
        return self.scale * self.factors

    def drawn(self, parts: _Array, freedom: float, prior: float, stream: np.random.Generator) -> "_Tails":
        """Return a draw given the parts: the scale by the factors there are, then the factors by that scale."""
        squares = parts**2
        weight = 0.5 * (_PRIOR_WEIGHT + len(parts))
        rate = 0.5 * (_PRIOR_WEIGHT * prior**2 + (squares / self.factors).sum(axis=0))
        scale = rate / stream.standard_gamma(weight, size=self.scale.shape)
        factors = 0.5 * (freedom + squares / scale) / stream.standard_gamma(0.5 * (freedom + 1), size=parts.shape)
        return _Tails(scale, factors)


def _levels(scores: _Array, steps: _Array, noises: _Array, stream: np.random.Generator) -> _Array:
    """Return a draw of the levels given every variance: the filter forwards, then draws backwards."""
    means, spreads = np.empty_like(scores), np.empty_like(scores)
    mean, variance = scores[0], noises[0]
    means[0], spreads[0] = mean, variance
    for t in range(1, len(scores)):
        before = variance + steps[t - 1]
        gain = before / (before + noises[t])
        mean = mean + gain * (scores[t] - mean)
        variance = before * (1 - gain)
        means[t], spreads[t] = mean, variance
    draws = stream.standard_normal(scores.shape)
    levels = np.empty_like(scores)
    levels[-1] = means[-1] + np.sqrt(spreads[-1]) * draws[-1]
    for t in range(len(scores) - 2, -1, -1):
        gain = spreads[t] / (spreads[t] + steps[t])
        levels[t] = means[t] + gain * (levels[t + 1] - means[t]) + np.sqrt(spreads[t] * (1 - gain)) * draws[t]
    return levels


def _fallen(levels: _Array) -> _Array:
    """Return of each column whether the level has fallen for good, as 1 or 0."""
    count = len(levels)
    threes = (levels[:-2] + levels[1:-1] + levels[2:]) / 3
    last = levels[-max(2, round(0.1 * count)) :].mean(axis=0)
    early = threes.argmax(axis=0) + 1 < _EARLY * (count - 1)
    fallen: _Array = ((threes.max(axis=0) - last > _FALL) & early).astype(np.float64)
    return fallen
