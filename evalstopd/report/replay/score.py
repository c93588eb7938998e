"""What a rule is worth over many runs: recall, false stops, compute saved, quality lost, each with its interval."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from evalstopd.report.replay.history import NEGATIVE, POSITIVE, History
from evalstopd.report.replay.intervals import Estimate, mean, precision, rate
from evalstopd.report.replay.judge import Outcome, judge


@dataclass(frozen=True, slots=True)
class Row:
    """One rule under one labelling, over all runs (`group` empty) or one group of them.

    `recall` is over declining runs, `fpr` over healthy ones, ambiguous runs count in neither. `saved` and the
    shares of runs that lose quality are over all runs, labelled or not; `saved_declining` is over declining ones.
    """

    rule: str
    label: str
    group: str
    runs: int
    positives: int
    negatives: int
    recall: Estimate
    fpr: Estimate
    precision: Estimate
    saved: Estimate
    saved_declining: Estimate
    lost_over_5pct: Estimate
    lost_over_10pct: Estimate


Grouping = Callable[[Outcome], str]


def by_family(outcome: Outcome) -> str:
    """Group runs by family."""
    return outcome.history.family


def by_evals(outcome: Outcome) -> str:
    """Group runs by the number of evals the rule could see."""
    bounds = ((10, "<= 10 evals"), (20, "11-20 evals"), (50, "21-50 evals"), (100, "51-100 evals"))
    return next((text for bound, text in bounds if outcome.evals <= bound), "> 100 evals")


GROUPINGS: Mapping[str, Grouping] = MappingProxyType({"family": by_family, "evals": by_evals})


def outcomes(histories: Iterable[History], rule: str) -> tuple[Outcome, ...]:
    """Return what the rule would have done to each run."""
    return tuple(judge(history, rule) for history in histories)


def score(rule: str, label: str, found: Sequence[Outcome], base_rate: float, group: str = "") -> Row:
    """Return the row of a rule under a labelling; `base_rate` is the share of declining runs for the precision."""
    positive = [each for each in found if each.history.labels.get(label) in POSITIVE]
    negative = [each for each in found if each.history.labels.get(label) in NEGATIVE]
    recall, fpr = rate(_stops(positive), len(positive)), rate(_stops(negative), len(negative))
    return Row(
        rule=rule,
        label=label,
        group=group,
        runs=len(found),
        positives=len(positive),
        negatives=len(negative),
        recall=recall,
        fpr=fpr,
        precision=precision(recall, fpr, base_rate),
        saved=mean([each.saved for each in found]),
        saved_declining=mean([each.saved for each in positive]),
        lost_over_5pct=rate(sum(each.lost > 0.05 for each in found), len(found)),
        lost_over_10pct=rate(sum(each.lost > 0.10 for each in found), len(found)),
    )


def grouped(rule: str, label: str, found: Sequence[Outcome], base_rate: float, by: Grouping) -> tuple[Row, ...]:
    """Return one row a group, in the order of the groups' names."""
    groups: dict[str, list[Outcome]] = {}
    for each in found:
        groups.setdefault(by(each), []).append(each)
    return tuple(score(rule, label, groups[name], base_rate, name) for name in sorted(groups))


def _stops(found: Iterable[Outcome]) -> int:
    return sum(each.stopped is not None for each in found)
