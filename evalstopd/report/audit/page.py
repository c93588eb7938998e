"""The audit report as people read it: a summary on top, then a block a decision; users' text does nothing in it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from evalstopd.core.intent import State
from evalstopd.report.audit.rows import AuditReport, DecisionRow, EvalRow, RemarkRow
from evalstopd.report.render import number, when
from evalstopd.report.text import plain

_WIDTH = 110


def as_text(report: AuditReport) -> str:
    """Return a summary, then a block a decision, then a line a remark; times in UTC."""
    lines = list(_head(report))
    for row in report.decisions:
        lines += ["", *_block(row)]
    if report.remarks:
        lines += ["", "remarks"]
        lines += [_remark_line(row) for row in report.remarks]
    return "\n".join(lines)


def _head(report: AuditReport) -> Iterator[str]:
    found = report.summary
    since = when(report.since_s) if report.since_s > 0 else "the beginning"
    yield f"audit of evalstopd {report.version}: from {since} to {when(report.until_s)}"
    yield f"head of the book: {report.head or 'none: nothing was ever written'}"
    yield f"decisions {len(report.decisions)}{_counts(found.decisions)}; outcomes{_counts(found.outcomes) or ': none'}"
    yield f"remarks   {len(report.remarks)}{_counts(found.remarks)}"
    unknown = f"; {found.unlimited} of them had no time limit that is known" if found.unlimited else ""
    yield f"GPU-hours of stopped jobs: {found.used:.2f} used, up to {found.freed:.2f} freed{unknown}"


def _counts(counts: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} {plain(what)}" for what, count in sorted(counts.items()))
    return f": {told}" if told else ""


def _block(row: DecisionRow) -> Iterator[str]:
    names = {"user": row.user, "account": row.account, "partition": row.partition, "name": row.name}
    who = ", ".join(f"{what} {plain(name)}" for what, name in names.items() if name)
    yield f"{row.what} of job {plain(row.job)} on {plain(row.cluster)}: {who}, {row.gpus} GPUs"
    for title, text in _facts(row):
        yield from _wrapped(f"{title:<11} {text}", 2, 14)
    for event in row.events:
        # Most lines of the history repeat the reason.
        text = event.text.replace(row.reason, "(as above)") if row.reason else event.text
        yield from _wrapped(f"{when(event.at_s)}  {plain(event.kind)}: {plain(text, 500)}", 4, 26)


def _wrapped(text: str, first: int, rest: int) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * first, subsequent_indent=" " * rest, break_on_hyphens=False)


def _facts(row: DecisionRow) -> Iterator[tuple[str, str]]:
    notice = f", not before {when(row.not_before_s)}" if row.not_before_s is not None else ""
    yield "decided", f"{when(row.decided_s)} at step {row.trigger_step}, rung {row.rung}{notice}"
    yield "because", plain(row.reason, 1000)
    yield (
        "by",
        f"rule {plain(row.rule)}, settings {plain(row.settings_hash) or '-'}, version {plain(row.version) or '-'}",
    )
    proof = f"proof {plain(row.proof)}, two-way {'yes' if row.two_way else 'no'}"
    yield "run", f"{plain(row.run_id)}, metric {plain(row.metric, 300)} ({plain(row.mode)}), {proof}"
    yield "evals", f"{len(row.evals)}: " + " ".join(map(_eval, row.evals))
    yield "best", f"{number(row.best_score)} at step {row.best_step}; the checkpoint to keep is that of {row.kept_step}"
    yield "checkpoint", _checkpoint(row)
    yield "life", f"{row.restarts}: submitted {when(row.submitted_s)}, started {_moment(row.started_s)}"
    yield "outcome", _outcome(row)
    yield "GPU-hours", _hours(row)


def _eval(each: EvalRow) -> str:
    error = "" if each.stderr is None else f"±{number(each.stderr)}"
    return f"{each.step}:{number(each.score)}{error}"


def _checkpoint(row: DecisionRow) -> str:
    pin = row.pin
    if pin is None:
        return "none was asked for" if row.what == "would-be stop" else "none is pinned for this step"
    where = plain(pin.path, 1000) or "nowhere"
    return f"{pin.state} at {where}, {pin.files} files, {pin.size} bytes, manifest {plain(pin.manifest) or '-'}"


def _outcome(row: DecisionRow) -> str:
    closed = f" {when(row.closed_s)}" if row.closed_s is not None else ""
    note = f" ({plain(row.note, 500)})" if row.note else ""
    code = f", exit code {plain(row.exit_code)}" if row.exit_code else ""
    told = f"{plain(row.ending)} {_moment(row.ended_s)}{code}, by {plain(row.ending_source)}"
    return f"{row.outcome}{closed}{note}; the life ended as {told}" if row.ending else f"{row.outcome}{closed}{note}"


def _hours(row: DecisionRow) -> str:
    hours = row.gpu_hours
    told = ["not known" if hours.used is None else f"{hours.used:.2f} used"]
    if hours.after is not None:
        told.append(f"{hours.after:.2f} of them after the decision")
    if hours.freed is not None:
        told.append(f"up to {hours.freed:.2f} freed: its time limit was {_moment(row.limit_end_s)}")
    elif row.outcome == State.CONFIRMED:
        told.append("no time limit is known, so nor is what was freed")
    if row.outcome == State.CONFIRMED:
        told.append(f"handed to {_jobs(row.handed_to)}")
    return "; ".join(told)


def _jobs(ids: Sequence[str]) -> str:
    return f"job {plain(', '.join(ids))}" if ids else "nobody that was seen"


def _moment(at_s: float | None) -> str:
    return "unknown" if at_s is None else when(at_s)


def _remark_line(row: RemarkRow) -> str:
    of = f"job {plain(row.job)}" if row.job else plain(row.subject)
    return f"  {when(row.at_s)}  {row.what}, {of}, {plain(row.code)}: {plain(row.text, 500)}"
