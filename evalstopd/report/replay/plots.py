"""Pictures of a replay: curves with the stop marked, and what each rule trades for what. Needs the extra `plots`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalstopd.core.curve import is_score
from evalstopd.errors import Misconfigured
from evalstopd.report.replay.history import POSITIVE
from evalstopd.report.replay.intervals import Estimate
from evalstopd.report.replay.judge import Outcome
from evalstopd.report.replay.score import Row
from evalstopd.report.replay.tables import harmless

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS, _DOWN = 4, 6
_DPI = 110


def draw_curves(path: Path, rule: str, label: str, outcomes: Sequence[Outcome]) -> None:
    """Draw up to 24 runs, declining ones first, each with the eval marked at which the rule stops it."""
    ranked = sorted(outcomes, key=lambda each: each.history.labels.get(label) not in POSITIVE)[: _ACROSS * _DOWN]
    figure = _figure(3.2 * _ACROSS, 2.2 * _DOWN)
    for place, each in enumerate(ranked, 1):
        _draw_run(figure.add_subplot(_DOWN, _ACROSS, place), each, label)
    figure.suptitle(_text(f"{rule}: where it stops (red); {label}"), fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=_DPI)


def draw_trade_off(path: Path, ladders: Mapping[str, Sequence[Row]]) -> None:
    """Draw each rule from its boldest to its most careful setting: recall by false stops, saved by lost."""
    figure = _figure(11, 4.8)
    power, price = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    for name, rows in ladders.items():
        _line(power, name, [(row.fpr, row.recall) for row in rows])
        _line(price, name, [(row.lost_over_10pct, row.saved) for row in rows])
    power.set(xlabel="false stops: share of healthy runs", ylabel="recall: share of declining runs", ylim=(0, 1.02))
    price.set(xlabel="share of runs that lose > 10 % of their range", ylabel="share of all evals saved")
    power.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=_DPI)


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra; only for who asks for pictures
    except ImportError:
        raise Misconfigured("pictures need matplotlib: pip install 'evalstopd[plots]'") from None
    return Figure(figsize=(width, height))


def _draw_run(axes: "Axes", each: Outcome, label: str) -> None:
    evals = [point for point in each.history.evals if is_score(point.score)]
    axes.plot([point.step for point in evals], [point.score for point in evals], color="0.4", linewidth=0.9, marker=".")
    if each.stopped is not None:
        axes.axvline(evals[each.stopped].step, color="tab:red", linewidth=1.2)
    axes.set_title(_text(f"{each.history.name} ({each.history.labels.get(label, '-')})"), fontsize=7)
    axes.tick_params(labelsize=6)


def _line(axes: "Axes", name: str, points: Sequence[tuple[Estimate, Estimate]]) -> None:
    known = [(x.value, y.value, y.low, y.high) for x, y in points if x.value is not None and y.value is not None]
    axes.plot(
        [x for x, *_ in known], [y for _, y, *_ in known], marker="o", markersize=3, linewidth=1, label=_text(name)
    )
    low, high = [low or 0.0 for *_, low, _ in known], [high or 0.0 for *_, high in known]
    axes.fill_between([x for x, *_ in known], low, high, alpha=0.12)


def _text(text: str) -> str:
    """Users' text is no formula: matplotlib reads what stands between dollar signs as one."""
    return harmless(text).replace("$", r"\$")
