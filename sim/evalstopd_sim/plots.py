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
            panel.set_title(_name(score))
        panels[0].legend(fontsize=7) if len(points) > 1 else None
        figure.suptitle(experiment.title)
        return {kind: _saved(figure, kind) for kind in ("png", "svg")}


def _saved(figure: "object", kind: str) -> bytes:
    out = io.BytesIO()
    meta = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(out, format=kind, dpi=110, metadata=meta)  # type: ignore[attr-defined]
    return out.getvalue()


def _lines(panel: "Axes", points: Mapping[str, Sequence[Row]], score: str) -> None:
    places = list(range(len(points)))
    labels = dict.fromkeys(_line(row, len(points)) for each in points.values() for row in each if row.label != "none")
    for label in labels:
        found = [
            next((_value(r, score) for r in each if _line(r, len(points)) == label), None) for each in points.values()
        ]
        kept = [(place, value) for place, value in zip(places, found, strict=True) if value is not None]
        below = [value.mean - max(value.low, -1e9) for _, value in kept]
        above = [min(value.high, 1e9) - value.mean for _, value in kept]
        panel.errorbar(
            [p for p, _ in kept], [v.mean for _, v in kept], [below, above], marker="o", capsize=2, label=label
        )
    panel.set_xticks(places, list(points), rotation=30 if len(places) > 5 else 0)


def _bars(panel: "Axes", points: Mapping[str, Sequence[Row]], score: str) -> None:
    rows = [row for each in points.values() for row in each if row.label != "none"]
    values = [value.mean if (value := _value(row, score)) else 0.0 for row in rows]
    panel.barh([row.label for row in rows], values)
    panel.axvline(0, color="black", linewidth=0.6)


def _line(row: Row, points: int) -> str:
    del points
    return "k-declines" if row.label.startswith("k-declines") and row.label != "k-declines(3)" else row.label


def _value(row: Row, score: str) -> Estimate | None:
    """Return the change against the base in per cent where there is one, else the score in per cent."""
    if score in row.changes:
        return row.changes[score]
    spread = row.spreads.get(score)
    return None if spread is None else Estimate(100 * spread.mean, 100 * spread.low, 100 * spread.high, spread.p_value)


def _name(score: str) -> str:
    names = {
        "jct_mean_s": "mean JCT, change in %",
        "w3_gpu_h": "wasted compute W3, change in %",
        "fpr": "FPR of all that do not hack, %",
        "fpr_healthy_rlhf": "FPR of healthy RLHF jobs, %",
        "f1": "F1, %",
    }
    return names.get(score, f"{score}, %")
