"""From what was asked to the answer's text; the commands only read their arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalstopd.core.detectors import detector
from evalstopd.errors import Misconfigured
from evalstopd.report.replay.history import LABELS, History, thinned
from evalstopd.report.replay.score import GROUPINGS, Grouping, Row, grouped, outcomes, score
from evalstopd.report.replay.sources import read_source
from evalstopd.report.replay.tables import as_json, as_text, write_csv

DEFAULT_RULES = ("k-declines:k=2",)
_FEWEST_EVALS = 2


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of replay. Empty tuples stand for the defaults."""

    sources: tuple[Path, ...]
    rules: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    groupings: tuple[str, ...] = ()
    max_evals: int | None = None
    base_rate: float = 0.48
    primary: bool = False


def answer(ask: Ask, *, json_out: bool, csv: Path | None) -> str:
    """Return the answer as text or JSON. Raises Misconfigured or ValueError in words a user understands."""
    histories = load(ask)
    rows, groups = judged(ask, histories, csv)
    return as_json(len(histories), rows, groups) if json_out else as_text([*rows, *groups])


def load(ask: Ask) -> tuple[History, ...]:
    """Return the histories that were asked for, thinned; runs of a single eval say nothing and are left out."""
    read = (history for source in ask.sources for history in read_source(source))
    chosen = (history for history in read if history.primary or not ask.primary)
    kept = tuple(thinned(history, ask.max_evals) for history in chosen if len(history.evals) >= _FEWEST_EVALS)
    if not kept:
        raise Misconfigured("no run with two evals or more in the sources given")
    return kept


def judged(ask: Ask, histories: Sequence[History], csv: Path | None) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return the rows over all runs and the rows by group; runs go to the CSV file where one is named."""
    for rule in ask.rules:
        detector(rule)
    labels = _labels(ask, histories)
    rows: list[Row] = []
    groups: list[Row] = []
    for rule in ask.rules or DEFAULT_RULES:
        found = outcomes(histories, rule)
        rows.extend(score(rule, label, found, ask.base_rate) for label in labels)
        for name in ask.groupings:
            groups.extend(row for label in labels for row in grouped(rule, label, found, ask.base_rate, _by(name)))
        if csv is not None:
            write_csv(csv, rule, found)
    return tuple(rows), tuple(groups)


def _labels(ask: Ask, histories: Sequence[History]) -> tuple[str, ...]:
    unknown = [name for name in ask.labels if name not in LABELS]
    if unknown:
        raise Misconfigured(f"unknown label {unknown[0]!r}; known: {', '.join(LABELS)}")
    if ask.labels:
        return ask.labels
    return next(((name,) for name in LABELS if any(name in each.labels for each in histories)), LABELS[:1])


def _by(name: str) -> Grouping:
    if name not in GROUPINGS:
        raise Misconfigured(f"unknown grouping {name!r}; known: {', '.join(GROUPINGS)}")
    return GROUPINGS[name]
