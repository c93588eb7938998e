"""Rules on curves that none was chosen on, judged by what each checkpoint was truly worth; and the decision on one.

Run from the root of the tree: python -m bench.fresh examples/curves/curves.jsonl [--told] [RULE ...]
The rules and the decision were committed before any rule was run on these curves (docs/rules.md, "New curves").
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from bench.label import read
from evalstopd.core.detectors import detector
from evalstopd.core.model import Mode
from evalstopd.core.noise import spread
from evalstopd.report.replay.history import NEGATIVE, POSITIVE, History
from evalstopd.report.replay.judge import Outcome, judge, smoothed, upward
from evalstopd.report.replay.run import Ask, load

TODAY = "recommended"
CANDIDATE = "blocks:c=2.23,growth=1.5,caution=8,slow=0.6,plain=1"
RULES = (TODAY, CANDIDATE, "blocks:c=1.75", "drop-test-safe", "k-declines:k=2")
LABELS = ("label_true", "label_agreed", "label_boot", "label")
MOST_EVALS = 20
DRAWS = 2000
WORSE_AT_MOST = 0.02  # false stops, by the upper end of the difference's interval
_LOSS = 0.10


@dataclass(frozen=True, slots=True)
class Judged:
    """What a rule did to one run: whether it stopped it, the share of time saved, and of true score lost."""

    source: str
    family: str
    labels: Mapping[str, str]
    stopped: bool
    saved: float
    truly_lost: float


Share = tuple[float, int]
"""A sum, and of how many."""

Measure = Callable[[Judged], Share]


def truly_lost(truth: Sequence[float], kept: int) -> float:
    """Return how much better the best true checkpoint of the run is than the best of the first `kept`.

    Both smoothed by a median of three, as a share of the truth's 5-95 % range, at most 1; more is better.
    """
    gap, whole = max(smoothed(truth)) - max(smoothed(truth[:kept])), spread(truth)
    return 0.0 if gap <= 0 else min(1.0, gap / whole) if whole > 0 else 1.0


def judged(rule: str, histories: Sequence[History], truths: Mapping[str, dict[str, Any]]) -> list[Judged]:
    """Return what a rule does to each run."""
    detector(rule)
    return [_judged(judge(history, rule), truths[history.name]) for history in histories]


def _judged(outcome: Outcome, row: dict[str, Any]) -> Judged:
    history, lost = outcome.history, 0.0
    if outcome.stopped is not None:
        step = history.evals[outcome.stopped].step
        mode = Mode.MAX if row["higher_is_better"] else Mode.MIN
        lost = truly_lost(upward(row["truth"], mode), sum(each <= step for each in row["steps"]))
    return Judged(history.source, history.family, history.labels, outcome.stopped is not None, outcome.saved, lost)


def recall(label: str) -> Measure:
    """Measure the share of declining runs that were stopped."""
    return lambda each: (float(each.stopped), 1) if each.labels.get(label) in POSITIVE else (0.0, 0)


def false_stops(label: str) -> Measure:
    """Measure the share of healthy runs that were stopped."""
    return lambda each: (float(each.stopped), 1) if each.labels.get(label) in NEGATIVE else (0.0, 0)


def saved(each: Judged) -> Share:
    """Measure the share of time saved, over all runs."""
    return each.saved, 1


def saved_on_declining(each: Judged) -> Share:
    """Measure the share of time saved on runs that truly decline."""
    return (each.saved, 1) if each.labels["label_true"] in POSITIVE else (0.0, 0)


def losing(each: Judged) -> Share:
    """Measure the share of runs that lose more than a tenth of their true range."""
    return float(each.truly_lost > _LOSS), 1


def value(found: Iterable[Judged], measure: Measure) -> float:
    """Return a measure over runs; nought where there are none of its kind."""
    sums = [measure(each) for each in found]
    return sum(part for part, _ in sums) / max(1, sum(of for _, of in sums))


def interval(
    first: Sequence[Judged], measure: Measure, second: Sequence[Judged] | None = None, draws: int = DRAWS
) -> tuple[float, float]:
    """Return the 95 % interval of a measure, or of how much it is above `second`'s: whole sources drawn anew."""
    signed = [(first, 1.0)] if second is None else [(first, 1.0), (second, -1.0)]
    sources = sorted({each.source for each in first})
    sums = [({source: _summed(found, source, measure) for source in sources}, sign) for found, sign in signed]
    stream, values = Random(1), []
    for _ in range(draws):
        drawn = stream.choices(sources, k=len(sources))
        values.append(sum(sign * _over(by, drawn) for by, sign in sums))
    values.sort()
    return values[round(0.025 * (draws - 1))], values[round(0.975 * (draws - 1))]


def _summed(found: Iterable[Judged], source: str, measure: Measure) -> Share:
    sums = [measure(each) for each in found if each.source == source]
    return sum(part for part, _ in sums), sum(of for _, of in sums)


def _over(by: Mapping[str, Share], drawn: Sequence[str]) -> float:
    return sum(by[source][0] for source in drawn) / max(1, sum(by[source][1] for source in drawn))


MEASURES: tuple[tuple[str, Measure, int], ...] = (
    ("recall", recall("label_true"), 1),
    ("false stops", false_stops("label_true"), -1),
    ("saved", saved, 1),
    ("saved on declining", saved_on_declining, 1),
    ("truly losing > 10 %", losing, -1),
)
"""By the true label; 1: more is better, -1: less is."""

_DECISIVE = ("recall", "false stops", "saved", "truly losing > 10 %")


def decision(candidate: Sequence[Judged], today: Sequence[Judged]) -> tuple[bool, list[str]]:
    """Return whether the candidate takes the place of today's rule, and each condition in words.

    It does if it is no worse in recall, false stops, share saved and runs truly losing, better in recall or in
    share saved, and if the upper end of the interval of its excess of false stops is at most 2 points.
    """
    gains = {
        name: (value(candidate, measure) - value(today, measure)) * sign
        for name, measure, sign in MEASURES
        if name in _DECISIVE
    }
    worst = interval(candidate, false_stops("label_true"), today)[1]
    told = [f"{name}: {'no worse' if gain >= 0 else 'WORSE'} ({gain:+.4f})" for name, gain in gains.items()]
    told.append(f"false stops at most {worst:+.4f} above ({WORSE_AT_MOST} allowed)")
    better = gains["recall"] > 0 or gains["saved"] > 0
    told.append("better in recall or saved: " + ("yes" if better else "NO"))
    return min(gains.values()) >= 0 and better and worst <= WORSE_AT_MOST, told


def verdict(*, adopted: bool, told: bool) -> str:
    """Return the decision in words; with standard errors told there is none, as was written beforehand."""
    if told:
        return "the conditions are " + ("met" if adopted else "not met") + ", which decides nothing: errors were told"
    return "the candidate is " + ("adopted" if adopted else "NOT adopted")


def table(found: Mapping[str, Sequence[Judged]]) -> list[str]:
    """Return each rule's measures with intervals, its recall and false stops by label, and both by family."""
    lines: list[str] = []
    for rule, each in found.items():
        lines.append(rule)
        lines.extend(_measure_line(name, each, measure) for name, measure, _ in MEASURES)
        lines.extend(_label_line(label, each) for label in LABELS)
        lines.extend(_family_line(family, each) for family in sorted({run.family for run in each}))
    return lines


def _measure_line(name: str, found: Sequence[Judged], measure: Measure) -> str:
    low, high = interval(found, measure)
    return f"  {name:20s} {value(found, measure):.3f} [{low:.3f}, {high:.3f}]"


def _label_line(label: str, found: Sequence[Judged]) -> str:
    return f"  {label:20s} recall {_share(found, recall(label))}  false stops {_share(found, false_stops(label))}"


def _family_line(family: str, found: Sequence[Judged]) -> str:
    own = [each for each in found if each.family == family]
    shares = f"recall {_share(own, recall('label_true'))}  false stops {_share(own, false_stops('label_true'))}"
    return f"  {family:20s} {shares}  saved {value(own, saved):.3f}  losing {value(own, losing):.3f}"


def _share(found: Iterable[Judged], measure: Measure) -> str:
    sums = [measure(each) for each in found]
    return f"{sum(part for part, _ in sums):.0f}/{sum(of for _, of in sums)}"


def histories_of(path: Path, *, told: bool) -> tuple[list[History], dict[str, dict[str, Any]]]:
    """Return the runs at 20 evals at most, with their standard errors or without, and the lines of the file by id."""
    rows = {row["id"]: row for row in read(path)}
    read_in = load(Ask((path,), max_evals=MOST_EVALS, primary=True))
    return [_told(history, rows[history.name]) if told else history for history in read_in], rows


def _told(history: History, row: dict[str, Any]) -> History:
    errors = dict(zip(row["steps"], row["eval_stderrs"], strict=True))
    return replace(history, evals=tuple(each._replace(stderr=errors[each.step]) for each in history.evals))


def main() -> None:
    """Print the table and the decision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", type=Path)
    parser.add_argument("rules", nargs="*", default=RULES)
    parser.add_argument("--told", action="store_true", help="rules are told each eval's standard error")
    options = parser.parse_args()
    histories, rows = histories_of(options.curves, told=options.told)
    found = {rule: judged(rule, histories, rows) for rule in options.rules}
    print("\n".join(table(found)))
    if {TODAY, CANDIDATE} <= set(found):
        adopted, told = decision(found[CANDIDATE], found[TODAY])
        print("\n".join(told))
        print(verdict(adopted=adopted, told=options.told))


if __name__ == "__main__":
    main()
