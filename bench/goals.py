"""Whether any rule of the tried family meets all goals on a collection of curves: a table, and the trade-off drawn.

Run from the root of the tree: python -m bench.goals CURVES.jsonl [--plot FILE.svg]
Nothing may be chosen by this: it looks at all curves, and a rule picked here is judged on what it was picked on.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from evalstopd.core.detectors import detector
from evalstopd.report.replay.halves import Half
from evalstopd.report.replay.history import History, evals_of
from evalstopd.report.replay.judge import first_stop
from evalstopd.report.replay.nulls import flat
from evalstopd.report.replay.run import Ask, load
from evalstopd.report.replay.score import outcomes, score

SHAPES = tuple((caution, slow, plain) for caution in (4, 8, 12) for slow in (0.0, 0.6, 0.7) for plain in (0, 1))
FACTORS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.45)
EVALS = 20
FLAT_RUNS = 600
_MIDDLE = 15  # evals at which the shapes' margins are set alike
_LABELS = ("label_agreed", "label_boot", "label")


@dataclass(frozen=True, slots=True)
class Member:
    """One rule of the family on one set of curves: recall and false stops by label, what it saves and costs."""

    rule: str
    recall: tuple[float, float, float]
    fpr: tuple[float, float, float]
    saved: float
    declining: float
    losing: float
    flat: float

    @property
    def harmless(self) -> bool:
        """Tell whether it keeps to every limit: false stops by each label, runs that lose, flat runs."""
        limits = zip((*self.fpr, self.losing, self.flat), (0.02, 0.05, 0.02, 0.02, 0.10), strict=True)
        return all(found <= most for found, most in limits)

    @property
    def useful(self) -> bool:
        """Tell whether it reaches every figure: recall by each label, saved in all and on declining runs."""
        wanted = zip((*self.recall, self.saved, self.declining), (0.85, 0.80, 0.75, 0.06, 0.35), strict=True)
        return all(found >= least for found, least in wanted)


def family() -> list[tuple[tuple[float, float, int], str]]:
    """Return the shapes with their rules, each from bold to careful."""
    return [(shape, _rule(shape, factor)) for shape in SHAPES for factor in FACTORS]


def _rule(shape: tuple[float, float, int], factor: float) -> str:
    caution, slow, plain = shape
    c = 1.8 * factor * (1 + 12 / _MIDDLE) / (1 + caution / _MIDDLE)
    return f"blocks:c={c:.3g},growth=1.5,caution={caution},slow={slow:g},plain={plain}"


def measured(rule: str, histories: Sequence[History], flat_share: float) -> Member:
    """Return what a rule does to these curves."""
    found = outcomes(histories, rule)
    rows = [score(rule, label, found, 0.5) for label in _LABELS]
    return Member(
        rule,
        recall=(rows[0].recall.value or 0.0, rows[1].recall.value or 0.0, rows[2].recall.value or 0.0),
        fpr=(rows[0].fpr.value or 0.0, rows[1].fpr.value or 0.0, rows[2].fpr.value or 0.0),
        saved=rows[0].saved.value or 0.0,
        declining=rows[1].saved_declining.value or 0.0,
        losing=rows[0].lost_over_10pct.value or 0.0,
        flat=flat_share,
    )


def flat_shares(rules: Sequence[str]) -> list[float]:
    """Return how many flat runs of 20 evals each rule stops; the same runs for every rule."""
    stream = Random(1)
    runs = [evals_of(range(EVALS), flat(EVALS, stream)) for _ in range(FLAT_RUNS)]
    return [sum(first_stop(detector(rule), run) is not None for run in runs) / FLAT_RUNS for rule in rules]


def table(members: Sequence[Member]) -> str:
    """Return what the family reaches: all goals at once, each within the limits, and the limits' price of recall."""
    harmless = [each for each in members if each.harmless]
    useful = [each for each in members if each.useful]
    recalling = [each for each in members if each.recall[1] >= 0.80]
    lines = [f"{len(members)} rules; {len(harmless)} keep to every limit, {len(useful)} reach every figure"]
    lines.append(f"  both: {sum(each.useful for each in harmless)}")
    if harmless:
        best = (max(each.recall[1] for each in harmless), max(each.saved for each in harmless))
        lines.append(f"  within the limits at best: posterior recall {best[0]:.3f}, saved {best[1]:.3f}")
    for name, least in (("reach every figure", useful), ("have posterior recall .80", recalling)):
        if least:
            fpr = [min(each.fpr[label] for each in least) for label in range(3)]
            harm = f"losing {min(each.losing for each in least):.3f}, flat {min(each.flat for each in least):.3f}"
            lines.append(f"  those that {name}, at least: FPR agreed {fpr[0]:.3f}, sigma {fpr[2]:.3f}, {harm}")
    return "\n".join(lines)


def draw(path: Path, shapes: Sequence[tuple[float, float, int]], members: Sequence[Member]) -> None:
    """Draw both trade-offs, one line a shape, the goals as boxes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only where something is drawn

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for shape in dict.fromkeys(shapes):
        line = [each for of, each in zip(shapes, members, strict=True) if of == shape]
        left.plot([each.fpr[2] for each in line], [each.recall[1] for each in line], marker=".", linewidth=0.8)
        right.plot([each.losing for each in line], [each.saved for each in line], marker=".", linewidth=0.8)
    for axes, corner, words in (
        (left, (0.02, 0.80), ("false stops (sigma label)", "recall (posterior label)")),
        (right, (0.02, 0.06), ("runs losing > 10 % of their range", "share of evals saved")),
    ):
        axes.axvline(corner[0], color="black", linestyle=":")
        axes.axhline(corner[1], color="black", linestyle=":")
        axes.set(xlabel=words[0], ylabel=words[1], title="goal: upper left", xlim=(0, 0.08))
    figure.savefig(path)


def main() -> None:
    """Print the table for all curves and for each half; draw the trade-off over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    shapes, rules = zip(*family(), strict=True)
    shares = flat_shares(rules)
    for half in Half:
        histories = load(Ask((options.curves,), max_evals=EVALS, primary=True, half=half))
        members = [measured(rule, histories, share) for rule, share in zip(rules, shares, strict=True)]
        print(f"{half}, {len(histories)} curves: {table(members)}")
        if options.plot is not None and half is Half.ALL:
            draw(options.plot, shapes, members)


if __name__ == "__main__":
    main()
