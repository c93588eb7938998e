"""How a whole curve is called declining or healthy where nobody has labelled it; see docs/rules.md."""

from collections.abc import Sequence
from statistics import median

from evalstopd.core.model import Mode
from evalstopd.core.noise import from_curve, spread
from evalstopd.report.replay.judge import smoothed, upward

_FEWEST = 6
_CLEAR, _DOUBTFUL = 4.0, 2.0  # falls, in units of the curve's noise


def labels(scores: Sequence[float], mode: Mode) -> dict[str, str]:
    """Return the labels `label` and `label_sigma_free` of a whole curve; none under six scores.

    Neither is the truth: the first trusts one early glitch, the second calls most flat noise declining.
    """
    if len(scores) < _FEWEST:
        return {}
    ups = upward(scores, mode)
    return {"label": by_noise(ups), "label_sigma_free": by_range(ups)}


def by_noise(scores: Sequence[float]) -> str:
    """Return the label by size in units of the curve's own noise; more is better.

    Declining: the median of the last tenth lies below the smoothed peak by more than 4 noises and a tenth of
    the range, and the curve never comes within 2 noises of the peak in its last tenth.
    """
    noise, smooth, tail = from_curve(scores), smoothed(scores), _tail(scores)
    peak, whole = max(smooth), spread(scores)
    fall = peak - median(scores[-tail:])
    last_near = max(i for i, score in enumerate(smooth) if score >= peak - _DOUBTFUL * noise)
    if fall > max(_CLEAR * noise, 0.10 * whole) and len(scores) - 1 - last_near >= tail:
        return "declining" if peak - smooth[0] > _DOUBTFUL * noise else "declining-from-start"
    return "ambiguous" if fall > _DOUBTFUL * noise and fall > 0.05 * whole else "healthy"


def by_range(scores: Sequence[float]) -> str:
    """Return the label by range alone: the end lies a fifth of it below a peak in the first four fifths."""
    smooth, tail = smoothed(scores), _tail(scores)
    peak = max(smooth)
    early = smooth.index(peak) < 0.8 * (len(scores) - 1)
    return "declining" if early and peak - median(scores[-tail:]) > 0.20 * spread(scores) else "healthy"


def _tail(scores: Sequence[float]) -> int:
    return max(2, round(0.1 * len(scores)))
