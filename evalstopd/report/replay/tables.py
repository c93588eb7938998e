"""Replay's answers as text, JSON and CSV. Names come from users, so they are made harmless here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from evalstopd.report.cells import write_table
from evalstopd.report.replay.compute import Hours, Joined, saved_hours
from evalstopd.report.replay.intervals import Estimate
from evalstopd.report.replay.judge import Outcome
from evalstopd.report.replay.nulls import FalseStops
from evalstopd.report.replay.score import Row
from evalstopd.report.text import plain
from evalstopd.report.tune import Proposal

_COLUMNS = (
    "recall",
    "fpr",
    "precision",
    "saved",
    "saved_declining",
    "lost_over_5pct",
    "lost_over_10pct",
)


_NAME_MOST = 80
_HOURS = ("account", "gpu_hours", "gpu_hours_saved")


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the rules save in GPU-hours, which runs could be joined to a job, and records of the file left out."""

    joined: Joined
    rows: tuple[Hours, ...]
    lost: Mapping[str, int] = field(default_factory=dict)


_HEAD = ("rule", "name", "source", "family", "metric", "evals", "stopped", "step", "kept", "lost", "saved")


_LEGEND = (
    "pos, neg: runs labelled declining, healthy; saved: share of a run's time left at the stop; lost_over_5pct: share "
    "of runs that lose > 5 % of their range by it; a trigger on a run's last eval stops nothing and does not count"
)


def harmless(text: str) -> str:
    """Return text that a terminal and a log take as text, and who pastes it into a spreadsheet: at most 80."""
    shown = plain(text, _NAME_MOST)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def as_text(rows: Sequence[Row], accounts: Accounts | None = None) -> str:
    """Return rows as a table: the figure and, in brackets, its 95 % interval; GPU-hours below it."""
    head = ["rule", "label", "group", "runs", "pos", "neg", *_COLUMNS]
    lines = ([*_identity(row), *(_shown(getattr(row, name)) for name in _COLUMNS)] for row in rows)
    table = f"{columns([head, *lines])}\n{_LEGEND}"
    return table if accounts is None else f"{table}\n\n{_hours_as_text(accounts)}"


def as_json(curves: int, rows: Iterable[Row], groups: Iterable[Row] = (), accounts: Accounts | None = None) -> str:
    """Return `{"curves": N, "rows": [...]}`, figures as numbers (null: nothing to estimate from), intervals beside."""
    answer: dict[str, Any] = {"curves": curves, "rows": [_plain(row) for row in rows]}
    grouped = [_plain(row) for row in groups]
    if grouped:
        answer["groups"] = grouped
    if accounts is not None:
        answer["accounting"] = _hours_as_data(accounts)
    return json.dumps(answer, indent=2)


def nulls_as_text(table: Sequence[FalseStops]) -> str:
    """Return false stops by rule and case, one column a length, as shares with their intervals."""
    lengths = sorted({each.evals for each in table})
    cells = {(each.rule, each.case, each.evals): _shown(each.share) for each in table}
    lines = dict.fromkeys((each.rule, each.case) for each in table)
    head = ["case", "rule", *(f"{length} evals" for length in lengths)]
    ordered = sorted(lines, key=lambda line: [each.case for each in table].index(line[1]))
    return columns([head, *([case, rule, *(cells[rule, case, n] for n in lengths)] for rule, case in ordered)])


def nulls_as_json(table: Iterable[FalseStops]) -> str:
    """Return `{"false_stops": [{"rule", "case", "evals", "runs", "share", "share_ci95"}]}`."""
    rows = [
        {
            "rule": each.rule,
            "case": each.case,
            "evals": each.evals,
            "runs": each.share.of,
            "share": each.share.value,
            "share_ci95": [each.share.low, each.share.high],
        }
        for each in table
    ]
    return json.dumps({"false_stops": rows}, indent=2)


def proposal_as_text(found: Proposal) -> str:
    """Return a proposal in words an admin can act on."""
    row = found.row
    promise = "is" if found.within else "is NOT shown to be"
    expected = (
        f"on sources it was not chosen on: recall {_shown(row.recall)}, false stops {_shown(row.fpr)}, "
        f"compute saved {_shown(row.saved)}, runs that lose > 10 % of their range {_shown(row.lost_over_10pct)}"
    )
    return "\n".join(
        [
            f"proposed: {found.rule}",
            f"chosen for at most {found.alpha:g} false stops by {row.label} on {row.runs} runs; fold by fold: "
            + ", ".join(found.chosen),
            expected,
            f"the budget {promise} kept (upper end of the 95 % interval)",
        ]
    )


def proposal_as_json(found: Proposal) -> str:
    """Return a proposal as JSON."""
    answer = {"rule": found.rule, "alpha": found.alpha, "folds": list(found.chosen), "within_budget": found.within}
    return json.dumps(answer | {"expected": _plain(found.row)}, indent=2)


def write_csv(path: Path, found: Mapping[str, Iterable[Outcome]], accounts: Accounts | None = None) -> None:
    """Write one line a rule and run to a CSV file, with its GPU-hours if joined; what was in the file is replaced."""
    with path.open("w", newline="", encoding="utf-8") as file:
        write_table(file, [[*_HEAD, *(() if accounts is None else _HOURS)]])
        for rule, outcomes in found.items():
            write_table(file, ([*_line(rule, each), *_own_hours(each, accounts)] for each in outcomes), _NAME_MOST)


def columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as aligned columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _hours_as_text(accounts: Accounts) -> str:
    head = ["rule", "account", "jobs", "GPU-hours", "saved GPU-hours", "of these where > 10 % of range is lost"]
    lines = [
        [*_whose(each), f"{each.gpu_hours:.1f}", _amount(each.saved), f"{each.losing:.1f}"] for each in accounts.rows
    ]
    lost = "".join(f"\nrecords left out of the accounting: {count} ({why})" for why, count in accounts.lost.items())
    return f"{columns([head, *lines])}\n{_joined_as_text(accounts.joined)}{lost}"


def _whose(each: Hours) -> tuple[str, str, str]:
    return each.rule, harmless(each.account) or "(all)", str(each.jobs)


def _joined_as_text(joined: Joined) -> str:
    left_out = "; ".join(f"{count} of them: {why}" for why, count in joined.missing.items())
    count = sum(joined.missing.values())
    said = f"runs joined to a job: {len(joined.runs)} of {len(joined.runs) + count}"
    return f"{said}; left out of the GPU-hours: {count} ({left_out})" if count else said


def _amount(figure: Estimate) -> str:
    if figure.low is None or figure.high is None:
        return f"{figure.value or 0.0:.1f}"
    return f"{figure.value or 0.0:.1f} [{figure.low:.1f}, {figure.high:.1f}]"


def _hours_as_data(accounts: Accounts) -> dict[str, Any]:
    rows = [
        {
            "rule": each.rule,
            "account": each.account,
            "jobs": each.jobs,
            "gpu_hours": each.gpu_hours,
            "gpu_hours_saved": each.saved.value,
            "gpu_hours_saved_ci95": [each.saved.low, each.saved.high],
            "gpu_hours_saved_losing": each.losing,
        }
        for each in accounts.rows
    ]
    return {"joined": len(accounts.joined.runs), "missing": dict(accounts.joined.missing), "rows": rows} | (
        {"records_left_out": dict(accounts.lost)} if accounts.lost else {}
    )


def _own_hours(each: Outcome, accounts: Accounts | None) -> tuple[object, ...]:
    if accounts is None:
        return ()
    job = accounts.joined.job_of(each.history)
    return ("",) * len(_HOURS) if job is None else (job.account, job.gpu_hours, saved_hours(each, job))


def _line(rule: str, each: Outcome) -> tuple[object, ...]:
    stopped = each.stopped
    names = (each.history.name, each.history.source, each.history.family, each.history.metric)
    step = "" if stopped is None else each.history.evals[stopped].step
    position = "" if stopped is None else stopped + 1
    return (rule, *names, each.evals, position, step, each.kept, each.lost, each.saved)


def _identity(row: Row) -> list[str]:
    return [row.rule, row.label, harmless(row.group), str(row.runs), str(row.positives), str(row.negatives)]


def _shown(figure: Estimate) -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.2f}, {figure.high:.2f}]"


def _plain(row: Row) -> dict[str, Any]:
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    figures = {name: value for name, value in values.items() if isinstance(value, Estimate)}
    intervals = {f"{name}_ci95": [each.low, each.high] for name, each in figures.items()}
    return values | {name: each.value for name, each in figures.items()} | intervals
