"""Every decision of a span of time with all that it rests on, as frozen rows: what the audit report shows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.intent import Evidence, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import Ending, JobKey, Life, Rung
from evalstopd.core.watch import Lived, Pin, Remark, Watch
from evalstopd.ports import Accounts, Archive, Chain, Span

_HOUR_S = 3600.0
_QUARANTINE = "quarantine"
_NO_ACTION = "no action"


class Book(Accounts, Archive, Chain, Protocol):
    """All that the report asks of a store."""


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One eval that a decision rests on; `score` and its standard error in the metric's unit."""

    step: int
    score: float
    stderr: float | None


@dataclass(frozen=True, slots=True)
class PinRow:
    """The checkpoint that is, or would be, kept: `size` in bytes, `manifest` the keeper's digest of its files.

    `path` is where the job's best was published, else where the pin lies.
    """

    step: int
    state: str
    path: str
    files: int
    size: int
    manifest: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One line of a decision's history; `at_s` in seconds since the epoch."""

    at_s: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Hours:
    """GPU-hours of the life that a decision was about: its GPUs times hours; None where a time is not known.

    `used`: from its start to its end, both by Slurm. `after`: from the decision to its end, of decisions that ended
    nothing: what a stop would have freed, for certain. `freed`: from its end to what would have been its end by its
    time limit (squeue's EndTime while it ran), of confirmed stops: up to so many were freed, fewer if it had ended by
    itself before its limit, which nobody can know.
    """

    used: float | None
    after: float | None
    freed: float | None


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision. Times in seconds since the epoch, None where not known or not yet.

    `what` is `stop` (decided on the enforce rung), `warning` (on warn) or `would-be stop` (on observe). `id` is its
    name in the book. `outcome` is the state of the intent, `booked` for a would-be stop. `proof` tells by what the
    run was proven to be the job's, `two_way` whether the run named the job as well. `pin` is None where there is
    none for the kept step.
    """

    what: str
    id: str
    cluster: str
    job: str
    uid: int
    restarts: int
    user: str
    account: str
    partition: str
    name: str
    rung: str
    rule: str
    metric: str
    mode: str
    settings_hash: str
    version: str
    run_id: str
    proof: str
    two_way: bool
    trigger_step: int
    declines: int
    reason: str
    best_step: int
    best_score: float
    kept_step: int
    evals: tuple[EvalRow, ...]
    pin: PinRow | None
    submitted_s: int
    started_s: float | None
    decided_s: float
    not_before_s: float | None
    limit_end_s: float | None
    ended_s: float | None
    closed_s: float | None
    outcome: str
    note: str
    ending: str
    exit_code: str
    ending_source: str
    gpus: int
    gpu_hours: Hours
    handed_to: tuple[str, ...]
    events: tuple[EventRow, ...]


@dataclass(frozen=True, slots=True)
class RemarkRow:
    """One line about something that was not done: `refused`, `quarantined`, or only `noted`. `job` is empty for the
    site's own.
    """

    what: str
    at_s: float
    subject: str
    job: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over the decisions, and GPU-hours over the confirmed stops: `unlimited` of them had no known limit."""

    decisions: Mapping[str, int]
    outcomes: Mapping[str, int]
    remarks: Mapping[str, int]
    used: float
    freed: float
    unlimited: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The decisions and remarks of a span, oldest first, and where the chain over the book ended then."""

    format: str
    since_s: float
    until_s: float
    version: str
    head: str
    summary: Summary
    decisions: tuple[DecisionRow, ...]
    remarks: tuple[RemarkRow, ...]


def audit_report(book: Book, span: Span, version: str) -> AuditReport:
    """Return all that was decided, refused or quarantined within a span."""
    head = book.head()
    intents, would_be = book.intents_within(span), book.would_be_within(span)
    around = _around(book, intents, would_be)
    decisions = [_of_intent(each, around) for each in intents] + [_of_would_be(each, around) for each in would_be]
    remarks = [_remark(each) for each in book.remarks_within(span)]
    ordered = tuple(sorted(decisions, key=lambda row: (row.decided_s, row.id)))
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

    watches: Mapping[JobKey, Watch]
    lives: Mapping[tuple[JobKey, Life], Lived]
    pins: Mapping[tuple[JobKey, int], Pin]
    events: Mapping[str, Sequence[IntentEvent]]


def _around(book: Book, intents: Sequence[Intent], would_be: Sequence[WouldBeStop]) -> _Around:
    keys = list(dict.fromkeys([each.key for each in intents] + [each.key for each in would_be]))
    events: dict[str, list[IntentEvent]] = {each.id: [] for each in intents}
    for event in book.events_of(list(events)):
        events[event.intent_id].append(event)
    return _Around(
        book.watches_of(keys),
        {(each.key, each.life): each for each in book.lives_of(keys)},
        {(pin.key, pin.step): pin for pin in book.pins_of(keys)},
        events,
    )


def _of_intent(intent: Intent, around: _Around) -> DecisionRow:
    life = around.lives.get((intent.key, intent.life))
    ending = intent.ending or (life.ending if life is not None else None)
    stopped = intent.state is State.CONFIRMED
    return _row(
        "stop" if intent.rung is Rung.ENFORCE else "warning",
        intent.id,
        (intent.key, intent.life, intent.created_s, intent.evidence),
        around,
        _Course(
            intent.rung.word, intent.user, intent.gpus, intent.state.value, intent.note, ending, intent.kept_path,
            intent.not_before_s, intent.changed_s if intent.closed else None, intent.handed_to,
            tuple(EventRow(each.at_s, each.kind, each.text) for each in around.events[intent.id]), stopped=stopped,
        ),
    )  # fmt: skip


def _of_would_be(stop: WouldBeStop, around: _Around) -> DecisionRow:
    life, watch = around.lives.get((stop.key, stop.life)), around.watches.get(stop.key)
    name = f"{stop.key.text}:{stop.life.restarts}:{stop.life.submitted_s}"
    user, gpus = watch.user if watch is not None else "", life.gpus if life is not None else 0
    course = _Course(Rung.OBSERVE.word, user, gpus, "booked", ending=life.ending if life is not None else None)
    return _row("would-be stop", name, (stop.key, stop.life, stop.at_s, stop.evidence), around, course)


@dataclass(frozen=True, slots=True)
class _Course:
    """What became of a decision."""

    rung: str
    user: str
    gpus: int
    outcome: str
    note: str = ""
    ending: Ending | None = None
    kept_path: str = ""
    not_before_s: float | None = None
    closed_s: float | None = None
    handed_to: tuple[str, ...] = ()
    events: tuple[EventRow, ...] = ()
    stopped: bool = False


def _row(
    what: str, name: str, decided: tuple[JobKey, Life, float, Evidence], around: _Around, course: _Course
) -> DecisionRow:
    key, life, decided_s, evidence = decided
    watch, lived = around.watches.get(key), around.lives.get((key, life))
    ending = course.ending
    return DecisionRow(
        what=what,
        id=name,
        cluster=key.cluster,
        job=key.job_id,
        uid=key.uid,
        restarts=life.restarts,
        user=course.user,
        account=watch.account if watch is not None else "",
        partition=watch.partition if watch is not None else "",
        name=watch.name if watch is not None else "",
        rung=course.rung,
        rule=evidence.rule,
        metric=evidence.metric,
        mode=evidence.mode,
        settings_hash=evidence.settings_hash,
        version=evidence.version,
        run_id=evidence.run_id,
        proof=evidence.proof,
        two_way=evidence.two_way,
        trigger_step=evidence.trigger_step,
        declines=evidence.declines,
        reason=evidence.reason,
        best_step=evidence.best_step,
        best_score=evidence.best_score,
        kept_step=evidence.kept_step,
        evals=_evals(evidence),
        pin=_pin(around.pins.get((key, evidence.kept_step)), course.kept_path),
        submitted_s=life.submitted_s,
        started_s=lived.started_s if lived is not None else None,
        decided_s=decided_s,
        not_before_s=course.not_before_s,
        limit_end_s=lived.limit_end_s if lived is not None else None,
        ended_s=ending.ended_s if ending is not None else None,
        closed_s=course.closed_s,
        outcome=course.outcome,
        note=course.note,
        ending=ending.state if ending is not None else "",
        exit_code=ending.exit_code if ending is not None else "",
        ending_source=ending.source if ending is not None else "",
        gpus=course.gpus,
        gpu_hours=_hours(course, lived, decided_s),
        handed_to=course.handed_to,
        events=course.events,
    )


def _evals(evidence: Evidence) -> tuple[EvalRow, ...]:
    errors = evidence.stderrs or (None,) * len(evidence.steps)
    # What was tampered with may be of unequal lengths: it is shown all the same, `audit verify` names it.
    return tuple(EvalRow(*each) for each in zip(evidence.steps, evidence.scores, errors, strict=False))


def _pin(pin: Pin | None, kept_path: str) -> PinRow | None:
    if pin is None:
        return None
    return PinRow(pin.step, pin.state.value, kept_path or pin.path, pin.files, pin.size, pin.manifest)


def _hours(course: _Course, lived: Lived | None, decided_s: float) -> Hours:
    """Return what can be known of a life's GPU-hours."""
    ended_s = course.ending.ended_s if course.ending is not None else None
    started_s, limit_s = (lived.started_s, lived.limit_end_s) if lived is not None else (None, None)
    return Hours(
        used=_between(course.gpus, started_s, ended_s),
        after=None if course.stopped else _between(course.gpus, decided_s, ended_s),
        freed=_between(course.gpus, ended_s, limit_s) if course.stopped else None,
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
    stopped = [row.gpu_hours for row in decisions if row.outcome == State.CONFIRMED]
    return Summary(
        decisions=Counter(row.what for row in decisions),
        outcomes=Counter(row.outcome for row in decisions),
        remarks=Counter(row.what for row in remarks),
        used=sum(hours.used or 0.0 for hours in stopped),
        freed=sum(hours.freed or 0.0 for hours in stopped),
        unlimited=sum(hours.freed is None for hours in stopped),
    )
