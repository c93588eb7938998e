"""From the store's book to the audit report: a span's decisions with what stands beside them, its remarks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from evalstopd.core.chain import would_be_name
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Evidence, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import Ending, JobKey, Life, Rung
from evalstopd.core.watch import Lived, Pin, Remark
from evalstopd.core.words import kind
from evalstopd.ports import Accounts, Archive, Chain, Span
from evalstopd.report.audit.rows import (
    AuditReport,
    BasisRow,
    DecisionRow,
    EvalRow,
    EventRow,
    Hours,
    JobRow,
    OutcomeRow,
    PinRow,
    RemarkRow,
    Summary,
    TimesRow,
)

_HOUR_S = 3600.0
_QUARANTINE = "quarantine"
_NO_ACTION = "no action"
DONE = (State.CONFIRMED, State.HELD)
"""The states of a stop that was done and not undone."""


class Book(Accounts, Archive, Chain, Protocol):
    """All that the report asks of a store."""


def audit_report(book: Book, span: Span, version: str) -> AuditReport:
    """Return all that was decided, refused or quarantined within a span."""
    head = book.head()
    intents, would_be = book.intents_within(span), book.would_be_within(span)
    around = _around(book, intents, would_be)
    decisions = [_of_intent(each, around) for each in intents] + [_of_would_be(each, around) for each in would_be]
    remarks = [_remark(each) for each in book.remarks_within(span)]
    ordered = tuple(sorted(decisions, key=lambda row: (row.times.decided_s, row.id)))
    return AuditReport(
        format="evalstopd-audit-1",
        since_s=span.since_s,
        until_s=span.until_s,
        version=version,
        head=head.text if head is not None else "",
        summary=_summary(ordered, remarks),
        decisions=ordered,
        remarks=tuple(sorted(remarks, key=lambda row: row.at_s)),
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """What stands in the book beside the decisions, by what it belongs to."""

    lives: Mapping[tuple[JobKey, Life], Lived]
    pins: Mapping[tuple[JobKey, int], Pin]
    events: Mapping[str, Sequence[IntentEvent]]
    credits: Mapping[str, Credit]


def _around(book: Book, intents: Sequence[Intent], would_be: Sequence[WouldBeStop]) -> _Around:
    keys = list(dict.fromkeys([each.key for each in intents] + [each.key for each in would_be]))
    events: dict[str, list[IntentEvent]] = {each.id: [] for each in intents}
    for event in book.events_of(list(events)):
        events[event.intent_id].append(event)
    return _Around(
        {(each.key, each.life): each for each in book.lives_of(keys)},
        {(pin.key, pin.step): pin for pin in book.pins_of(keys)},
        events,
        {credit.intent_id: credit for credit in book.credits_of(keys)},
    )


@dataclass(frozen=True, slots=True)
class _Decided:
    """A decision of either kind: whose, when, on what, and what became of it."""

    what: str
    id: str
    rung: Rung
    key: JobKey
    life: Life
    at_s: float
    evidence: Evidence
    state: str
    ending: Ending | None
    intent: Intent | None = None

    @property
    def stopped(self) -> bool:
        """Tell whether the job was ended by it and is to stay so."""
        return self.state in DONE


def _of_intent(intent: Intent, around: _Around) -> DecisionRow:
    lived = around.lives.get((intent.key, intent.life))
    ending = intent.ending or (lived.ending if lived is not None else None)
    what = "stop" if intent.rung is Rung.ENFORCE else "warning"
    whose = (what, intent.id, intent.rung, intent.key, intent.life, intent.created_s)
    return _row(_Decided(*whose, intent.evidence, intent.state.value, ending, intent), around)


def _of_would_be(stop: WouldBeStop, around: _Around) -> DecisionRow:
    lived = around.lives.get((stop.key, stop.life))
    ending = lived.ending if lived is not None else None
    whose = ("would-be stop", would_be_name(stop), Rung.OBSERVE, stop.key, stop.life, stop.at_s)
    return _row(_Decided(*whose, stop.evidence, "booked", ending), around)


def _row(each: _Decided, around: _Around) -> DecisionRow:
    lived = around.lives.get((each.key, each.life))
    job = _job(each, lived)
    kept = around.pins.get((each.key, each.evidence.kept_step))
    return DecisionRow(
        what=each.what,
        id=each.id,
        rung=each.rung.word,
        job=job,
        basis=_basis(each.evidence),
        pin=_pin(kept, each.intent.kept_path if each.intent is not None else ""),
        times=_times(each, lived),
        outcome=_outcome(each),
        gpu_hours=_hours(each, lived, job.gpus, around.credits.get(each.id)),
        events=tuple(EventRow(event.at_s, event.kind, event.text) for event in around.events.get(each.id, ())),
    )


def _job(each: _Decided, lived: Lived | None) -> JobRow:
    key, intent = each.key, each.intent
    # A life is sealed, a watch is not.
    user = lived.user if lived is not None else ""
    gpus = lived.gpus if lived is not None else 0
    return JobRow(
        cluster=key.cluster,
        id=key.job_id,
        uid=key.uid,
        restarts=each.life.restarts,
        user=intent.user if intent is not None else user,
        account=lived.account if lived is not None else "",
        partition=lived.partition if lived is not None else "",
        name=lived.name if lived is not None else "",
        gpus=intent.gpus if intent is not None else gpus,
    )


def _basis(evidence: Evidence) -> BasisRow:
    told = {each.name: getattr(evidence, each.name) for each in fields(BasisRow) if each.name != "evals"}
    return BasisRow(**told, evals=_evals(evidence))


def _times(each: _Decided, lived: Lived | None) -> TimesRow:
    intent, ending = each.intent, each.ending
    return TimesRow(
        submitted_s=each.life.submitted_s,
        started_s=lived.started_s if lived is not None else None,
        decided_s=each.at_s,
        not_before_s=intent.not_before_s if intent is not None else None,
        limit_end_s=lived.limit_end_s if lived is not None else None,
        ended_s=ending.ended_s if ending is not None else None,
        closed_s=intent.changed_s if intent is not None and intent.closed else None,
    )


def _outcome(each: _Decided) -> OutcomeRow:
    intent, ending = each.intent, each.ending
    return OutcomeRow(
        state=each.state,
        note=intent.note if intent is not None else "",
        ending=ending.state if ending is not None else "",
        exit_code=ending.exit_code if ending is not None else "",
        ending_source=ending.source if ending is not None else "",
        handed_to=intent.handed_to if intent is not None else (),
    )


def _evals(evidence: Evidence) -> tuple[EvalRow, ...]:
    errors = evidence.stderrs or (None,) * len(evidence.steps)
    # What was tampered with may be of unequal lengths: it is shown all the same, `audit verify` names it.
    return tuple(EvalRow(*each) for each in zip(evidence.steps, evidence.scores, errors, strict=False))


def _pin(pin: Pin | None, kept_path: str) -> PinRow | None:
    if pin is None:
        return None
    path = kept_path or pin.path
    return PinRow(pin.step, pin.state.value, path, pin.files, pin.size, pin.manifest, kind(path))


def _hours(each: _Decided, lived: Lived | None, gpus: int, credit: Credit | None) -> Hours:
    """Return what can be known of a life's GPU-hours."""
    ended_s = each.ending.ended_s if each.ending is not None else None
    started_s, limit_s = (lived.started_s, lived.limit_end_s) if lived is not None else (None, None)
    return Hours(
        used=_between(gpus, started_s, ended_s),
        after=None if each.stopped or each.state == State.UNDONE else _between(gpus, each.at_s, ended_s),
        freed=_between(gpus, ended_s, limit_s) if each.stopped else None,
        credited=credit.gpu_hours if credit is not None else None,
    )


def _between(gpus: int, since_s: float | None, until_s: float | None) -> float | None:
    if since_s is None or until_s is None:
        return None
    return gpus * max(0.0, until_s - since_s) / _HOUR_S


def _remark(each: Remark) -> RemarkRow:
    refused = "refused" if each.text.startswith(_NO_ACTION) else "noted"
    what = "quarantined" if each.code.startswith(_QUARANTINE) else refused
    parts = each.subject.split(":")
    return RemarkRow(what, each.at_s, each.subject, parts[1] if len(parts) == 4 else "", each.code, each.text)


def _summary(decisions: Sequence[DecisionRow], remarks: Sequence[RemarkRow]) -> Summary:
    stopped = [row.gpu_hours for row in decisions if row.outcome.state in DONE]
    return Summary(
        decisions=Counter(row.what for row in decisions),
        outcomes=Counter(row.outcome.state for row in decisions),
        remarks=Counter(row.what for row in remarks),
        used=sum((hours.used or 0.0 for hours in stopped), 0.0),
        freed=sum((hours.freed or 0.0 for hours in stopped), 0.0),
        credited=sum((row.gpu_hours.credited or 0.0 for row in decisions), 0.0),
        unlimited=sum(hours.freed is None for hours in stopped),
    )
