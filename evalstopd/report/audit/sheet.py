"""The audit report for programs: a table for spreadsheets, and JSON; users' text does nothing in either."""

import io
from collections.abc import Mapping, Sequence

from evalstopd.report.audit.rows import AuditReport, DecisionRow, PinRow, RemarkRow
from evalstopd.report.cells import write_table
from evalstopd.report.render import to_json, when

_JOB = ("cluster", "uid", "restarts", "user", "account", "partition", "name", "gpus")
_BASIS = (
    "rule", "metric", "mode", "settings_hash", "version", "run_id", "proof", "two_way", "trigger_step", "declines",
    "reason", "best_step", "best_score", "kept_step", "corroborated", "contradicted", "dataset",
)  # fmt: skip
_OUTCOME = ("note", "ending", "exit_code", "ending_source")
_TIMES = ("submitted", "started", "decided", "not_before", "limit_end", "ended", "closed")
_STATES = ("warned", "promoted", "signalled", "cancelled", "held", "confirmed", "undone")
_EVALS = ("steps", "scores", "stderrs")
_PIN = ("pin_state", "checkpoint", "pin_files", "pin_bytes", "pin_manifest", "pin_kind")
_HOURS = ("gpu_hours_used", "gpu_hours_after", "gpu_hours_freed_at_most", "gpu_hours_credited")
COLUMNS = (
    "what", "id", "job", *_JOB, "rung", *_BASIS, "outcome", *_OUTCOME, *_TIMES, *_STATES, *_EVALS, *_PIN, *_HOURS,
    "handed_to", "history", "code", "subject",
)  # fmt: skip
"""The names of the spreadsheet's columns, in order."""


def as_json(report: AuditReport) -> str:
    """Return the report with its fields as audit/rows.py documents them; times in seconds since the epoch.

    Signs that mean something in HTML are spelled out, so that it may be put into a page.
    """
    text = to_json(report)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def as_csv(report: AuditReport) -> str:
    """Return one row a decision, then one row a remark, under one line of names; times in UTC, ISO 8601.

    Lists are JSON; report/cells.py tells what becomes of texts.
    """
    out = io.StringIO()
    rows = (*map(_decision, report.decisions), *map(_remark, report.remarks))
    write_table(out, [COLUMNS, *([row.get(name, "") for name in COLUMNS] for row in rows)])
    return out.getvalue().rstrip("\n")


def _decision(row: DecisionRow) -> Mapping[str, object]:
    hours = row.gpu_hours
    reached = {event.kind: _iso(event.at_s) for event in row.events}
    return {
        "what": row.what,
        "id": row.id,
        "job": row.job.id,
        "rung": row.rung,
        "outcome": row.outcome.state,
        **_named(row.job, _JOB),
        **_named(row.basis, _BASIS),
        **_named(row.outcome, _OUTCOME),
        **{name: _iso(getattr(row.times, f"{name}_s")) for name in _TIMES},
        **{kind: reached.get(kind, "") for kind in _STATES},
        **{name: [getattr(each, name[:-1]) for each in row.basis.evals] for name in _EVALS},
        **_pin(row.pin),
        **dict(zip(_HOURS, (hours.used, hours.after, hours.freed, hours.credited), strict=True)),
        "handed_to": list(row.outcome.handed_to),
        "history": [[_iso(each.at_s), each.kind, each.text] for each in row.events],
    }


def _named(record: object, names: Sequence[str]) -> Mapping[str, object]:
    return {name: getattr(record, name) for name in names}


def _pin(pin: PinRow | None) -> Mapping[str, object]:
    if pin is None:
        return {}
    return dict(zip(_PIN, (pin.state, pin.path, pin.files, pin.size, pin.manifest, pin.kind), strict=True))


def _remark(row: RemarkRow) -> Mapping[str, object]:
    return {
        "what": row.what,
        "job": row.job,
        "reason": row.text,
        "decided": _iso(row.at_s),
        "code": row.code,
        "subject": row.subject,
    }


def _iso(at_s: float | None) -> str:
    return "" if at_s is None else when(at_s).replace(" ", "T")
