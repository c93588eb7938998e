"""One picture an experiment, as PNG and SVG with the same bytes on every run. matplotlib is optional."""

import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from evalstopd_sim.experiments import Experiment
from evalstopd_sim.rows import Row
from evalstopd_sim.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# An interval from one seed has no end; it is drawn this long.
_FAR = 1e9

MISSING = "plots were left out: they need matplotlib (pip install 'evalstopd[plots]')"


def available() -> bool:
    """Tell whether plots can be drawn here."""
    return find_spec("matplotlib") is not None


def draw(experiment: Experiment, points: Mapping[str, Sequence[Row]]) -> dict[str, bytes]:
    """Return the picture by kind (`png`, `svg`); nothing without matplotlib."""
    if not available():
        return {}
    from matplotlib import rc_context  # noqa: PLC0415 - heavy, and optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    with rc_context({"svg.hashsalt": experiment.name, "font.size": 9}):
        figure = Figure(figsize=(4.2 * len(experiment.drawn), 3.6), layout="constrained")
        panels = figure.subplots(1, len(experiment.drawn), squeeze=False)[0]
        for panel, score in zip(panels, experiment.drawn, strict=True):
            (_bars if len(points) == 1 else _lines)(panel, points, score)
            panel.set_xlabel(experiment.axis)
            panel.set_title(_name(score), fontsize="medium")
        if len(points) > 1:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=7)
        figure.suptitle(experiment.title)
        return {kind: _saved(figure, kind) for kind in ("png", "svg")}


def _saved(figure: "Figure", kind: str) -> bytes:
    out = io.BytesIO()
    meta = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(out, format=kind, dpi=110, metadata=meta)
    return out.getvalue()


def _lines(panel: "Axes", points: Mapping[str, Sequence[Row]], score: str) -> None:
    """Draw a line for each rule over the points; names in place of numbers below are not joined."""
    joined = "-" if all(at[0].isdigit() for at in points) else ""
    for name, found in _series(points, score).items():
        heights = [value.mean for _, value in found]
        below = [value.mean - max(value.low, -_FAR) for _, value in found]
        above = [min(value.high, _FAR) - value.mean for _, value in found]
        places = [place for place, _ in found]
        panel.errorbar(places, heights, [below, above], marker="o", capsize=2, label=name, linestyle=joined)
    panel.set_xticks(range(len(points)), list(points), rotation=30 if max(map(len, points)) > 5 else 0)


def _series(points: Mapping[str, Sequence[Row]], score: str) -> dict[str, list[tuple[int, Estimate]]]:
    """Return for each rule its place and value at each point. A rule that changes from point to point is one rule."""
    labels = [row.label for each in points.values() for row in each if row.label != "none"]
    series: dict[str, list[tuple[int, Estimate]]] = {}
    for place, each in enumerate(points.values()):
        for row in each:
            value = _value(row, score)
            if row.label != "none" and value is not None:
                name = row.label if labels.count(row.label) > 1 else row.label.partition("(")[0]
                series.setdefault(name, []).append((place, value))
    return series


def _bars(panel: "Axes", points: Mapping[str, Sequence[Row]], score: str) -> None:
    rows = [row for each in points.values() for row in each if row.label != "none"]
    values = [value.mean if (value := _value(row, score)) else 0.0 for row in rows]
    panel.barh([row.label for row in rows], values)
    panel.axvline(0, color="black", linewidth=0.6)


def _value(row: Row, score: str) -> Estimate | None:
    """Return the change against the base in per cent where there is one, else the score in per cent."""
    if score in row.changes:
        return row.changes[score]
    spread = row.spreads.get(score)
    if spread is None:
        return None
    return Estimate(100 * spread.mean, 100 * max(0.0, spread.low), 100 * min(1.0, spread.high), spread.p_value)


def _name(score: str) -> str:
    names = {
        "jct_mean_s": "mean JCT, change in %",
        "w3_gpu_h": "wasted compute W3, change in %",
        "fpr": "FPR of all that do not hack, %",
        "fpr_healthy_rlhf": "FPR of healthy RLHF jobs, %",
        "f1": "F1, %",
    }
    return names.get(score, f"{score}, %")
