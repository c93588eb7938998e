"""From the scores of the repeats to the table: means with 95 % intervals, paired changes, real beside simulated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from evalstopd_sim.score import Scores
from evalstopd_sim.stats import Estimate, estimate

from .plan import HOUR_S, Plan, Run

ARMS = ("real off", "real on", "simulated off", "simulated on", "through daemon on")
# How a figure is called, its unit, and the score it comes from.
FIGURES = (
    ("mean JCT", "h", "jct_mean_s"),
    ("W1: hacking jobs past their peak", "GPU-h", "w1_gpu_h"),
    ("W3: W1 and healthy jobs stopped", "GPU-h", "w3_gpu_h"),
    ("W4: hacking jobs stopped too early", "GPU-h", "w4_gpu_h"),
    ("jobs stopped", "", "stopped"),
)
COMPARED = ("jct_mean_s", "w1_gpu_h", "w3_gpu_h")
PAIRS = (("real", "real on", "real off"), ("simulated", "simulated on", "simulated off"),
         ("through daemon", "through daemon on", "simulated off"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Repeat:
    """One seed: the run of each of ARMS."""

    seed: int
    runs: Mapping[str, Run]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table in the workload's own hours: each arm's mean, and what the daemon changes, in per cent."""

    name: str
    unit: str
    arms: Mapping[str, Estimate]
    changes: Mapping[str, Estimate]


def figures(plan: Plan, repeats: Sequence[Repeat]) -> list[Figure]:
    """Return the lines of the table."""
    return [_figure(plan, repeats, *figure) for figure in FIGURES]


def _figure(plan: Plan, repeats: Sequence[Repeat], name: str, unit: str, score: str) -> Figure:
    values = {arm: [_value(plan, each.runs[arm].scores, score) for each in repeats] for arm in ARMS}
    pairs = PAIRS if score in COMPARED else ()
    changes = {pair: _change(values[on], values[off]) for pair, on, off in pairs if all(values[off])}
    return Figure(name, unit, {arm: estimate(each) for arm, each in values.items()}, changes)


def _change(on: Sequence[float], off: Sequence[float]) -> Estimate:
    return estimate([100 * (a / b - 1) for a, b in zip(on, off, strict=True)])


def _value(plan: Plan, scores: Scores, name: str) -> float:
    """Return a score in hours of the workload: a real second is so many of its own."""
    value = float(getattr(scores, name) or 0.0)
    if name.endswith("_s"):
        return value / plan.hour_s
    return value * HOUR_S / plan.hour_s if name.endswith("_gpu_h") else value


def table(found: Sequence[Figure]) -> str:
    """Return the table as text."""
    lines = [("", *ARMS), *((f"{each.name} ({each.unit})" if each.unit else each.name,
                             *(shown(each.arms[arm]) for arm in ARMS)) for each in found)]  # fmt: skip
    lines += [("", *("",) * len(ARMS)), ("change by the daemon", *(pair for pair, _, _ in PAIRS))]
    lines += [(each.name, *(shown(each.changes[pair], "%") for pair, _, _ in PAIRS)) for each in found if each.changes]
    widths = [max(len(line[place]) for line in lines if place < len(line)) for place in range(len(ARMS) + 1)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
                     for line in lines)  # fmt: skip


def apart(found: Sequence[Figure], repeats: Sequence[Repeat]) -> list[str]:
    """Say how far prediction and reality differ, in words with numbers."""
    delays = [_told_delay(repeats, arm) for arm in ("real on", "through daemon on")]
    said = ["from the eval to the end of a stopped job: {} in reality, {} predicted through the daemon".format(*delays)]
    for each in found:
        if not each.changes:
            continue
        off = 100 * (each.arms["real off"].mean / each.arms["simulated off"].mean - 1)
        change, *others = (each.changes[pair].mean for pair, _, _ in PAIRS)
        points = " and ".join(f"{change - other:+.1f}" for other in others)
        said.append(
            f"{each.name}: without the daemon reality is {off:+.1f} % from the simulation; the daemon's effect "
            f"is {points} points from what is predicted at each eval and through the daemon"
        )
    return said


def _told_delay(repeats: Sequence[Repeat], arm: str) -> str:
    delays = [delay_s for each in repeats if (delay_s := each.runs[arm].delay_s) is not None]
    return f"{sum(delays) / len(delays):.1f} real seconds" if delays else "nobody was stopped"


def shown(value: Estimate, unit: str = "") -> str:
    """Return a mean with its interval, where there is one."""
    sign = "+" if unit else ""
    told = f"{value.mean:{sign}.2f}{unit}" if not unit else f"{value.mean:+.1f} {unit}"
    if not isfinite(value.low):
        return told
    digits = 1 if unit else 2
    return f"{told} [{value.low:{sign}.{digits}f}, {value.high:{sign}.{digits}f}]"


def as_data(found: Sequence[Figure]) -> list[dict[str, object]]:
    """Return the table for JSON; an interval that one repeat does not give is null."""
    return [
        {
            "figure": each.name,
            "unit": each.unit,
            "arms": {arm: _plain(value) for arm, value in each.arms.items()},
            "changes_percent": {pair: _plain(value) for pair, value in each.changes.items()},
        }
        for each in found
    ]


def _plain(value: Estimate) -> dict[str, float | None]:
    low, high = (each if isfinite(each) else None for each in (value.low, value.high))
    return {"mean": value.mean, "ci95_low": low, "ci95_high": high, "p_value": value.p_value}
