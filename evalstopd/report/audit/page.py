"""The audit report as people read it: a summary on top, then a block a decision; users' text does nothing in it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from evalstopd.core.words import LOGGED
from evalstopd.report.audit.gather import DONE
from evalstopd.report.audit.rows import AuditReport, DecisionRow, EvalRow, OutcomeRow, RemarkRow, TimesRow
from evalstopd.report.render import number, when
from evalstopd.report.text import of_dataset, plain

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
    yield f"head of the book: {plain(report.head) or 'none: nothing was ever written'}"
    yield f"decisions {len(report.decisions)}{_counts(found.decisions)}; outcomes{_counts(found.outcomes) or ': none'}"
    yield f"remarks   {len(report.remarks)}{_counts(found.remarks)}"
    unknown = f"; {found.unlimited} of them had no time limit that is known" if found.unlimited else ""
    credited = f", {found.credited:.2f} credited for undone stops" if found.credited else ""
    yield f"GPU-hours of stopped jobs: {found.used:.2f} used, up to {found.freed:.2f} freed{credited}{unknown}"


def _counts(counts: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} {plain(what)}" for what, count in sorted(counts.items()))
    return f": {told}" if told else ""


def _block(row: DecisionRow) -> Iterator[str]:
    job = row.job
    names = {"user": job.user, "account": job.account, "partition": job.partition, "name": job.name}
    who = ", ".join(f"{what} {plain(name)}" for what, name in names.items() if name)
    yield f"{row.what} of job {plain(job.id)} on {plain(job.cluster)}: {who}, {job.gpus} GPUs"
    for title, text in _facts(row):
        yield from _wrapped(f"{title:<11} {text}", 2, 14)
    reason = row.basis.reason
    for event in row.events:
        # Most lines of the history repeat the reason.
        text = event.text.replace(reason, "(as above)") if reason else event.text
        yield from _wrapped(f"{when(event.at_s)}  {plain(event.kind)}: {plain(text, 500)}", 4, 26)


def _wrapped(text: str, first: int, rest: int) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * first, subsequent_indent=" " * rest, break_on_hyphens=False)


def _facts(row: DecisionRow) -> Iterator[tuple[str, str]]:
    basis, times = row.basis, row.times
    notice = f", not before {when(times.not_before_s)}" if times.not_before_s is not None else ""
    yield "decided", f"{when(times.decided_s)} at step {basis.trigger_step}, rung {row.rung}{notice}"
    yield "because", plain(basis.reason, 1000)
    made = f"settings {plain(basis.settings_hash) or '-'}, version {plain(basis.version) or '-'}"
    yield "by", f"rule {plain(basis.rule)}, {made}"
    proof = f"proof {plain(basis.proof)}, two-way {'yes' if basis.two_way else 'no'}"
    series = f"{plain(basis.metric, 300)}{of_dataset(basis.dataset)} ({plain(basis.mode)})"
    yield "run", f"{plain(basis.run_id)}, metric {series}, {proof}"
    if basis.corroborated:
        yield "agrees", plain(basis.corroborated, 300)
    if basis.contradicted:
        yield "disagrees", plain(basis.contradicted, 300)
    yield "evals", f"{len(basis.evals)}: " + " ".join(map(_eval, basis.evals))
    best = f"{number(basis.best_score)} at step {basis.best_step}"
    yield "best", f"{best}; the checkpoint to keep is that of {basis.kept_step}"
    yield "checkpoint", _checkpoint(row)
    yield "life", f"{row.job.restarts}: submitted {when(times.submitted_s)}, started {_moment(times.started_s)}"
    yield "outcome", _outcome(row.outcome, times)
    yield "GPU-hours", _hours(row)


def _eval(each: EvalRow) -> str:
    error = "" if each.stderr is None else f"±{number(each.stderr)}"
    return f"{each.step}:{number(each.score)}{error}"


def _checkpoint(row: DecisionRow) -> str:
    pin = row.pin
    if pin is None:
        return "none was asked for" if row.what == "would-be stop" else "none is pinned for this step"
    where = plain(pin.path, 1000) or "nowhere"
    if pin.kind == LOGGED:
        return f"{where}, {LOGGED}: {pin.files} files, {pin.size} bytes by its listing {plain(pin.manifest) or '-'}"
    return f"{pin.state} at {where}, {pin.files} files, {pin.size} bytes, manifest {plain(pin.manifest) or '-'}"


def _outcome(found: OutcomeRow, times: TimesRow) -> str:
    closed = f" {when(times.closed_s)}" if times.closed_s is not None else ""
    note = f" ({plain(found.note, 500)})" if found.note else ""
    code = f", exit code {plain(found.exit_code)}" if found.exit_code else ""
    told = f"{plain(found.ending)} {_moment(times.ended_s)}{code}, by {plain(found.ending_source)}"
    return f"{found.state}{closed}{note}" + (f"; the life ended as {told}" if found.ending else "")


def _hours(row: DecisionRow) -> str:
    hours = row.gpu_hours
    told = ["not known" if hours.used is None else f"{hours.used:.2f} used"]
    if hours.after is not None:
        told.append(f"{hours.after:.2f} of them after the decision")
    if hours.freed is not None:
        told.append(f"up to {hours.freed:.2f} freed: its time limit was {_moment(row.times.limit_end_s)}")
    elif row.outcome.state in DONE:
        told.append("no time limit is known, so nor is what was freed")
    if hours.credited is not None:
        told.append(f"{hours.credited:.2f} credited, for the stop was undone")
    if row.outcome.state in DONE:
        told.append(f"handed to {_jobs(row.outcome.handed_to)}")
    return "; ".join(told)


def _jobs(ids: Sequence[str]) -> str:
    return f"job {plain(', '.join(ids))}" if ids else "nobody that was seen"


def _moment(at_s: float | None) -> str:
    return "unknown" if at_s is None else when(at_s)


def _remark_line(row: RemarkRow) -> str:
    of = f"job {plain(row.job)}" if row.job else plain(row.subject)
    return f"  {when(row.at_s)}  {row.what}, {of}, {plain(row.code)}: {plain(row.text, 500)}"
