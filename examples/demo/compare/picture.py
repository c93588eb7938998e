"""The picture of the comparison: mean JCT and waste, real and simulated, the daemon off and on."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from evalstopd_sim.stats import Estimate
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from .figures import ARMS, Figure

DRAWN = ("mean JCT", "W1: hacking jobs past their peak", "W3: W1 and healthy jobs stopped")
COLOURS = ("#8da0cb", "#3b5b92", "#c9c9c9", "#7f7f7f", "#4d4d4d")


def draw(found: Sequence[Figure], file: Path) -> None:
    """Write the picture as PNG."""
    drawn = [each for each in found if each.name in DRAWN]
    canvas = Canvas(figsize=(3.6 * len(drawn), 3.8), layout="constrained")
    for panel, each in zip(canvas.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        _bars(panel, each)
    canvas.savefig(file, dpi=110, metadata={"Software": None})


def _bars(panel: Axes, each: Figure) -> None:
    values = [each.arms[arm] for arm in ARMS]
    panel.bar(ARMS, [value.mean for value in values], color=COLOURS)
    # From one repeat there is no interval to draw.
    errors = [_half(value) for value in values]
    if all(isfinite(error) for error in errors):
        panel.errorbar(ARMS, [value.mean for value in values], errors, fmt="none", ecolor="black", capsize=3)
    panel.set_title(each.name, fontsize=9)
    panel.set_ylabel(each.unit)
    panel.set_ylim(bottom=0)
    panel.tick_params("x", rotation=35, labelsize=8)


def _half(value: Estimate) -> float:
    return (value.high - value.low) / 2
