"""From what was asked to the answer's text; the commands only read their arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalstopd.core.detectors import detector
from evalstopd.core.spec import parse_spec
from evalstopd.errors import WrongUsage
from evalstopd.report.replay.compute import Joined, hours, join, read_jobs
from evalstopd.report.replay.halves import Half, half_of
from evalstopd.report.replay.history import LABELS, History, thinned
from evalstopd.report.replay.judge import Outcome
from evalstopd.report.replay.nulls import null_table
from evalstopd.report.replay.plots import draw_curves, draw_trade_off
from evalstopd.report.replay.score import GROUPINGS, Grouping, Row, grouped, outcomes, score
from evalstopd.report.replay.sources import Pick, Tracker, read_source
from evalstopd.report.replay.tables import (
    Accounts,
    as_json,
    as_text,
    nulls_as_json,
    nulls_as_text,
    proposal_as_json,
    proposal_as_text,
    write_csv,
)
from evalstopd.report.tune import LADDERS, tune

__all__ = ["Ask", "Half", "Pick", "Places", "false_stops", "load", "replayed", "tuned"]

DEFAULT_RULES = ("recommended", "k-declines:k=2")
NULL_RULES = ("recommended", "k-declines:k=2", "drop-test-safe")
_FEWEST_EVALS = 2


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of replay or tune. Empty tuples stand for the defaults; `tracker` opens the site's own.

    `sacct` is a file of accounting that runs are joined to by their jobs.
    """

    sources: tuple[Path, ...]
    rules: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    groupings: tuple[str, ...] = ()
    max_evals: int | None = None
    base_rate: float = 0.48
    primary: bool = False
    half: Half = Half.ALL
    pick: Pick = field(default_factory=Pick)
    tracker: Callable[[], Tracker] | None = None
    sacct: Path | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where the answer goes beside the terminal."""

    csv: Path | None = None
    plots: Path | None = None


def replayed(ask: Ask, places: Places, *, json_out: bool) -> str:
    """Return what each rule would have done. Raises WrongUsage or ValueError in words a user understands."""
    _check(ask)
    past = None if ask.sacct is None else read_jobs(ask.sacct)
    histories = load(ask)
    labels = _labels(ask, histories)
    found = {rule: outcomes(histories, rule) for rule in ask.rules or DEFAULT_RULES}
    rows = [score(rule, label, each, ask.base_rate) for rule, each in found.items() for label in labels]
    groups = [
        row
        for rule, each in found.items()
        for name in ask.groupings
        for label in labels
        for row in grouped(rule, label, each, ask.base_rate, _by(name))
    ]
    account = None if past is None else _accounted(found, join(histories, past[0]), past[1])
    if places.csv is not None:
        write_csv(places.csv, found, account)
    if places.plots is not None:
        _draw(places.plots, ask, histories, found, labels[0])
    return as_json(len(histories), rows, groups, account) if json_out else as_text([*rows, *groups], account)


def _accounted(found: Mapping[str, Sequence[Outcome]], joined: Joined, lost: Mapping[str, int]) -> Accounts:
    return Accounts(joined, tuple(row for rule, each in found.items() for row in hours(rule, each, joined)), lost)


def false_stops(ask: Ask, runs: int, seed: int, *, json_out: bool) -> str:
    """Return the false-stop table; healthy real runs are in it if a source is given."""
    _check(ask)
    histories = load(ask) if ask.sources else ()
    table = null_table(ask.rules or NULL_RULES, histories, runs, seed)
    return nulls_as_json(table) if json_out else nulls_as_text(table)


def tuned(ask: Ask, alpha: float, *, json_out: bool) -> str:
    """Return the proposal for a false-stop budget."""
    _check(ask)
    histories = load(ask)
    proposal = tune(histories, _labels(ask, histories)[0], alpha, ask.base_rate)
    return proposal_as_json(proposal) if json_out else proposal_as_text(proposal)


def load(ask: Ask) -> tuple[History, ...]:
    """Return the histories that were asked for, thinned; runs of a single eval say nothing and are left out."""
    read = (history for source in ask.sources for history in read_source(source, ask.pick, ask.tracker))
    chosen = (history for history in read if _asked_for(history, ask))
    kept = tuple(thinned(history, ask.max_evals) for history in chosen)
    if not kept:
        raise WrongUsage("no run with two evals or more in the sources given")
    return kept


def _asked_for(history: History, ask: Ask) -> bool:
    return (
        len(history.evals) >= _FEWEST_EVALS
        and (history.primary or not ask.primary)
        and ask.half in (Half.ALL, half_of(history.source))
    )


def _check(ask: Ask) -> None:
    """Say what is wrong before anything is read."""
    for rule in ask.rules:
        detector(rule)
    for name in ask.groupings:
        _by(name)
    unknown = [name for name in ask.labels if name not in LABELS]
    if unknown:
        raise WrongUsage(f"unknown label {unknown[0]!r}; known: {', '.join(LABELS)}")


def _labels(ask: Ask, histories: Sequence[History]) -> tuple[str, ...]:
    if ask.labels:
        return ask.labels
    return next(((name,) for name in LABELS if any(name in each.labels for each in histories)), LABELS[:1])


def _by(name: str) -> Grouping:
    if name not in GROUPINGS:
        raise WrongUsage(f"unknown grouping {name!r}; known: {', '.join(GROUPINGS)}")
    return GROUPINGS[name]


def _trade_offs(ask: Ask, histories: Sequence[History], label: str) -> dict[str, list[Row]]:
    names = dict.fromkeys(parse_spec(rule).name for rule in ask.rules or DEFAULT_RULES)
    ladders = {name: LADDERS.get(name, (name,)) for name in names}
    return {
        name: [score(rule, label, outcomes(histories, rule), ask.base_rate) for rule in ladder]
        for name, ladder in ladders.items()
    }


def _draw(
    folder: Path, ask: Ask, histories: Sequence[History], found: Mapping[str, Sequence[Outcome]], label: str
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (rule, each) in enumerate(found.items(), 1):
        draw_curves(folder / f"curves-{number}-{parse_spec(rule).name}.png", rule, label, each)
    draw_trade_off(folder / "trade-off.png", _trade_offs(ask, histories, label))
