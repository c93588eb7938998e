"""Which rule a site should use for the false stops it can bear: chosen and judged on different sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstopd.errors import WrongUsage
from evalstopd.report.replay.halves import folds
from evalstopd.report.replay.history import History
from evalstopd.report.replay.judge import Outcome
from evalstopd.report.replay.score import Row, outcomes, score

LADDERS: Mapping[str, tuple[str, ...]] = {
    "recommended": tuple(f"recommended:c={c}" for c in (1.0, 1.2, 1.4, 1.6, 1.8, 2.1, 2.5, 3.0, 4.0)),
    "blocks": tuple(f"blocks:c={c}" for c in (1.0, 1.25, 1.5, 1.75, 2.1, 2.5, 3.0, 3.6, 4.5)),
    "k-declines": tuple(f"k-declines:k={k}" for k in range(2, 8)),
}
"""Each family of rules from the boldest to the most careful."""

_FEWEST_SOURCES = 3
_FEWEST_HEALTHY = 20


@dataclass(frozen=True, slots=True)
class Proposal:
    """What `tune` found: the rule, what it does where it was not chosen, and how it was chosen.

    `row` pools the folds: each run is judged by the rule that the other sources' runs chose. `chosen` has that
    rule fold by fold; if they differ, the choice hangs on few runs. `within` tells whether the upper end of the
    false-stop rate's interval lies within the budget; if not, the history is too small to promise it.
    """

    rule: str
    alpha: float
    row: Row
    chosen: tuple[str, ...]
    within: bool


def tune(histories: Sequence[History], label: str, alpha: float, base_rate: float) -> Proposal:
    """Return the rule with the highest recall whose false stops on healthy runs are at most `alpha`.

    Raises WrongUsage where there are too few sources or healthy runs to choose and judge on, or where no rule
    keeps to the budget.
    """
    found = {rule: outcomes(histories, rule) for ladder in LADDERS.values() for rule in ladder}
    groups = folds(histories)
    _enough(histories, label, groups)
    chosen = tuple(_choose(_outside(found, group), label, alpha) for group in groups)
    pooled = [each for rule, group in zip(chosen, groups, strict=True) for each in _inside(found[rule], group)]
    row = score("cross-validated", label, pooled, base_rate)
    within = row.fpr.high is not None and row.fpr.high <= alpha
    return Proposal(_choose(found, label, alpha), alpha, row, chosen, within)


def _choose(found: Mapping[str, Sequence[Outcome]], label: str, alpha: float) -> str:
    rows = [score(rule, label, each, 0.5) for rule, each in found.items()]
    kept = [row for row in rows if row.fpr.value is not None and row.fpr.value <= alpha]
    if not kept:
        raise WrongUsage(f"no rule keeps to a false-stop budget of {alpha:g} on this history")
    return max(kept, key=lambda row: (row.recall.value or 0.0, row.saved_declining.value or 0.0)).rule


def _outside(found: Mapping[str, Sequence[Outcome]], group: frozenset[str]) -> dict[str, list[Outcome]]:
    return {rule: [e for e in each if e.history.source not in group] for rule, each in found.items()}


def _inside(found: Sequence[Outcome], group: frozenset[str]) -> list[Outcome]:
    return [each for each in found if each.history.source in group]


def _enough(histories: Sequence[History], label: str, groups: Sequence[frozenset[str]]) -> None:
    healthy = sum(each.labels.get(label) == "healthy" for each in histories)
    if len(groups) < _FEWEST_SOURCES or healthy < _FEWEST_HEALTHY:
        raise WrongUsage(
            f"{len(groups)} sources and {healthy} healthy runs by {label}: at least {_FEWEST_SOURCES} and "
            f"{_FEWEST_HEALTHY} are needed to choose a rule and judge it on other sources"
        )
