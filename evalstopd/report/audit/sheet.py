"""The audit report for programs: a table for spreadsheets, and JSON; users' text does nothing in either."""

import csv
import io
import json
from collections.abc import Mapping

from evalstopd.report.audit.rows import AuditReport, DecisionRow, RemarkRow
from evalstopd.report.render import to_json, when
from evalstopd.report.text import plain

_MOST = 4000
# A spreadsheet takes a cell that begins with one of these for a formula; the last four are full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NAMES = (
    "what", "id", "cluster", "job", "uid", "restarts", "user", "account", "partition", "name", "rung", "rule",
    "metric", "mode", "settings_hash", "version", "run_id", "proof", "two_way", "trigger_step", "declines", "reason",
    "best_step", "best_score", "kept_step", "outcome", "note", "ending", "exit_code", "ending_source", "gpus",
)  # fmt: skip
_TIMES = ("submitted", "started", "decided", "not_before", "limit_end", "ended", "closed")
_STATES = ("warned", "promoted", "signalled", "cancelled", "confirmed")
_MORE = (
    "steps", "scores", "stderrs", "pin_state", "checkpoint", "pin_files", "pin_bytes", "pin_manifest",
    "gpu_hours_used", "gpu_hours_after", "gpu_hours_freed_at_most", "handed_to", "history", "code", "subject",
)  # fmt: skip


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

    Lists are JSON. A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    out = io.StringIO()
    table = csv.DictWriter(out, (*_NAMES, *_TIMES, *_STATES, *_MORE), restval="", lineterminator="\n")
    table.writeheader()
    for row in (*map(_decision, report.decisions), *map(_remark, report.remarks)):
        table.writerow({name: cell(value) for name, value in row.items()})
    return out.getvalue().rstrip("\n")


def cell(value: object) -> str:
    """Return a value fit for a cell; numbers are ours, texts may be anybody's."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return repr(value)
        case list():
            return json.dumps(value, ensure_ascii=True)
        case _:
            text = str(value)
            return f"'{plain(text, _MOST)}" if text.lstrip(" ").startswith(_FORMULA) else plain(text, _MOST)


def _decision(row: DecisionRow) -> Mapping[str, object]:
    reached = {event.kind: _iso(event.at_s) for event in row.events}
    return {
        **{name: getattr(row, name) for name in _NAMES},
        **{name: _iso(getattr(row, f"{name}_s")) for name in _TIMES},
        **{kind: reached.get(kind, "") for kind in _STATES},
        **_evals(row),
        **_pin(row),
        "gpu_hours_used": row.gpu_hours.used,
        "gpu_hours_after": row.gpu_hours.after,
        "gpu_hours_freed_at_most": row.gpu_hours.freed,
        "handed_to": list(row.handed_to),
        "history": [[_iso(each.at_s), each.kind, each.text] for each in row.events],
    }


def _evals(row: DecisionRow) -> Mapping[str, object]:
    return {
        "steps": [each.step for each in row.evals],
        "scores": [each.score for each in row.evals],
        "stderrs": [each.stderr for each in row.evals],
    }


def _pin(row: DecisionRow) -> Mapping[str, object]:
    pin = row.pin
    if pin is None:
        return {}
    names = ("pin_state", "checkpoint", "pin_files", "pin_bytes", "pin_manifest")
    return dict(zip(names, (pin.state, pin.path, pin.files, pin.size, pin.manifest), strict=True))


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
