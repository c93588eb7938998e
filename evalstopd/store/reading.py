"""The questions that the SQL store answers, each within the caller's transaction; `jobs` are job keys' texts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, and_, false, func, literal, null, or_, select

from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn, Decision
from evalstopd.core.credit import Credit
from evalstopd.core.intent import CLOSED, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey, Point, Rung
from evalstopd.core.preempt import Preemption
from evalstopd.core.registry import PENDING
from evalstopd.core.shift import Shift
from evalstopd.core.watch import Lived, Pin, PinState, Remark, Watch
from evalstopd.ports import Book, Span
from evalstopd.store import order, rows
from evalstopd.store.chunks import chunks
from evalstopd.store.tables import (
    BindingRow,
    BreakerRow,
    CreditRow,
    EventRow,
    IntentRow,
    JobRow,
    LifeRow,
    PinRow,
    PointRow,
    PreemptionRow,
    RemarkRow,
    ShiftRow,
    WatchRow,
    WouldBeRow,
)

_NEWEST = (
    WatchRow.first_s.desc(),
    JobRow.cluster.desc(),
    JobRow.job_id.desc(),
    JobRow.uid.desc(),
    JobRow.submitted_s.desc(),
)
_PRESENT = and_(
    LifeRow.job == WatchRow.job,
    LifeRow.restarts == WatchRow.restarts,
    LifeRow.submitted_s == WatchRow.submitted_s,
)


def book(source: Connection, cluster: str) -> Book:
    """Return what is open on a cluster."""
    live = and_(JobRow.cluster == cluster, WatchRow.over.is_(False))
    return Book(
        watches=order.in_key_order(_watches(source, live)),
        pins=order.in_step_order(_live_pins(source, live)),
        intents=order.oldest_intents(_to_tend(source, cluster)),
        triggered=_triggered(source, live),
        booked=_booked(source, live),
        said=_said(source, live),
        breakers=order.in_scope_order(breakers(source, BreakerRow.cluster == cluster)),
        shifts=order.in_job_order(shifts(source, cluster)),
    )


def decisions(source: Connection, cluster: str, since_s: float) -> list[Decision]:
    """Return what was decided or acted on since then: intents, and would-be stops, which free no GPUs."""
    whose = select(*rows.KEY, func.coalesce(LifeRow.account, ""))
    present = whose.outerjoin(WatchRow, WatchRow.job == JobRow.job).outerjoin(LifeRow, _PRESENT)
    here = present.where(JobRow.cluster == cluster)
    late = or_(IntentRow.created_s >= since_s, IntentRow.acted_s >= since_s)
    intents = here.add_columns(IntentRow.gpus, IntentRow.created_s, IntentRow.acted_s, false(), IntentRow.rung)
    observed = literal(Rung.OBSERVE, IntentRow.rung.type)
    would_be = here.add_columns(literal(0), WouldBeRow.at_s, null(), WouldBeRow.wished, observed)
    asked = (
        intents.join(IntentRow, IntentRow.job == JobRow.job).where(late),
        would_be.join(WouldBeRow, WouldBeRow.job == JobRow.job).where(WouldBeRow.at_s >= since_s),
    )
    return [Decision(JobKey(*row[:4]), *row[4:]) for each in asked for row in source.execute(each)]


def breakers(source: Connection, *where: ColumnElement[bool]) -> list[BreakerTurn]:
    """Return the last turn of each breaker."""
    last = select(func.max(BreakerRow.id)).where(*where).group_by(BreakerRow.cluster, BreakerRow.scope)
    query = select(*rows.BREAKER_COLUMNS).where(BreakerRow.id.in_(last))
    return [BreakerTurn(*row) for row in source.execute(query)]


def preemptions(source: Connection, cluster: str, since_s: float) -> list[Preemption]:
    """Return the preemptions asked for since then."""
    query = select(*rows.PREEMPTION_COLUMNS).join(PreemptionRow, PreemptionRow.job == JobRow.job)
    found = source.execute(query.where(JobRow.cluster == cluster, PreemptionRow.at_s >= since_s))
    return [rows.preemption_of(row) for row in found]


def preemptions_of(source: Connection, jobs: Sequence[str]) -> list[Preemption]:
    """Return the preemptions of jobs, of all their lives."""
    query = select(*rows.PREEMPTION_COLUMNS).join(PreemptionRow, PreemptionRow.job == JobRow.job)
    asked = [query.where(PreemptionRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.preemption_of(row) for each in asked for row in source.execute(each)]


def shifts(source: Connection, cluster: str) -> list[Shift]:
    """Return the waiting jobs of a cluster that were moved."""
    return [
        rows.shift_of(row) for row in source.execute(select(*rows.SHIFT_COLUMNS).where(ShiftRow.cluster == cluster))
    ]


def intents_by_state(source: Connection) -> dict[State, int]:
    """Return how many intents are in each state."""
    found = source.execute(select(IntentRow.state, func.count()).group_by(IntentRow.state))
    return {row[0]: row[1] for row in found}


def holders(source: Connection, run_ids: Sequence[str]) -> dict[str, Binding]:
    """Return who holds each of these runs, on every cluster and ended jobs too: nobody else may take it over."""
    found: dict[str, Binding] = {}
    for part in chunks(run_ids):
        last = select(func.max(BindingRow.id)).where(BindingRow.run_id.in_(part)).group_by(BindingRow.run_id)
        columns = (BindingRow.run_id, BindingRow.proof, BindingRow.two_way, BindingRow.since_s)
        query = select(*rows.KEY, *columns).join(BindingRow, BindingRow.job == JobRow.job)
        held = (Binding(JobKey(*row[:4]), *row[4:]) for row in source.execute(query.where(BindingRow.id.in_(last))))
        found |= {binding.run_id: binding for binding in held}
    return found


def points(source: Connection, jobs: Sequence[str]) -> Mapping[str, list[Point]]:
    """Return the points of jobs, by the job."""
    found: dict[str, list[Point]] = defaultdict(list)
    for part in chunks(jobs):
        for job, *fields in source.execute(points_query(part)):
            found[job].append(Point(*fields))
    return found


def points_query(jobs: Sequence[str]) -> Executable:
    """Return the one statement that reads points, for a look at its plan too."""
    return select(*rows.POINT_COLUMNS).where(PointRow.job.in_(jobs))


def watches_of_id(source: Connection, job_id: str) -> list[Watch]:
    """Return the watches of all jobs that have had an id."""
    return _watches(source, JobRow.job_id == job_id)


def newest_watches(source: Connection, limit: int) -> list[Watch]:
    """Return the watches of the jobs first seen last."""
    return _watches(source, limit=limit)


def watches_since(source: Connection, first_s: float) -> list[Watch]:
    """Return the watches of the jobs first seen at a moment or later."""
    return _watches(source, WatchRow.first_s >= first_s)


def watches(source: Connection, jobs: Sequence[str]) -> list[Watch]:
    """Return the watches of jobs."""
    return [each for part in chunks(jobs) for each in _watches(source, WatchRow.job.in_(part))]


def lives(source: Connection, jobs: Sequence[str]) -> list[Lived]:
    """Return all lives of jobs."""
    asked = [_LIVES.where(LifeRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.lived_of(row) for each in asked for row in source.execute(each)]


def present_lives(source: Connection, jobs: Sequence[str]) -> list[Lived]:
    """Return the lives in which jobs were watched last."""
    query = _LIVES.join(WatchRow, _PRESENT)
    asked = [query.where(LifeRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.lived_of(row) for each in asked for row in source.execute(each)]


def intents_named(source: Connection, ids: Sequence[str]) -> list[Intent]:
    """Return the intents of these names."""
    return [each for part in chunks(ids) for each in _intents(source, IntentRow.id.in_(part))]


def intents_within(source: Connection, span: Span) -> list[Intent]:
    """Return the intents decided within a span."""
    return _intents(source, _within(IntentRow.created_s, span))


def would_be_within(source: Connection, span: Span) -> list[WouldBeStop]:
    """Return the would-be stops booked within a span."""
    return [rows.would_be_of(row) for row in source.execute(_WOULD_BE.where(_within(WouldBeRow.at_s, span)))]


def remarks_within(source: Connection, span: Span) -> list[Remark]:
    """Return the remarks made within a span, in the order they were written."""
    found = source.execute(_REMARKS.where(_within(RemarkRow.at_s, span)).order_by(RemarkRow.id))
    return [Remark(*row[1:]) for row in found]


def remarks_numbered(source: Connection, numbers: Sequence[int]) -> list[tuple[int, Remark]]:
    """Return the remarks of these numbers, with them."""
    asked = [_REMARKS.where(RemarkRow.id.in_(part)) for part in chunks(numbers)]
    return [(row[0], Remark(*row[1:])) for each in asked for row in source.execute(each)]


def bindings_numbered(source: Connection, numbers: Sequence[int]) -> list[tuple[int, Binding]]:
    """Return the bindings of these numbers, with them."""
    query = select(BindingRow.id, *rows.BINDING_COLUMNS).join(BindingRow, BindingRow.job == JobRow.job)
    asked = [query.where(BindingRow.id.in_(part)) for part in chunks(numbers)]
    return [(row[0], Binding(JobKey(*row[1:5]), *row[5:])) for each in asked for row in source.execute(each)]


def breakers_numbered(source: Connection, numbers: Sequence[int]) -> list[tuple[int, BreakerTurn]]:
    """Return the breakers' turns of these numbers, with them."""
    query = select(BreakerRow.id, *rows.BREAKER_COLUMNS)
    asked = [query.where(BreakerRow.id.in_(part)) for part in chunks(numbers)]
    return [(row[0], BreakerTurn(*row[1:])) for each in asked for row in source.execute(each)]


def _within(moment: Any, span: Span) -> ColumnElement[bool]:
    return and_(moment >= span.since_s, moment < span.until_s)


def intents(source: Connection, jobs: Sequence[str]) -> list[Intent]:
    """Return all intents of jobs."""
    return [each for part in chunks(jobs) for each in _intents(source, IntentRow.job.in_(part))]


def stops(source: Connection, cluster: str, job_ids: Sequence[str]) -> list[Intent]:
    """Return the stops that were done to jobs of these ids."""
    done = and_(JobRow.cluster == cluster, IntentRow.state.in_(order.STOPPED))
    return [each for part in chunks(job_ids) for each in _intents(source, and_(JobRow.job_id.in_(part), done))]


def credits_to(source: Connection, jobs: Sequence[str]) -> list[Credit]:
    """Return all credits for stops of jobs."""
    asked = [_CREDITS.where(CreditRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.credit_of(row) for each in asked for row in source.execute(each)]


def credits_for(source: Connection, intent_ids: Sequence[str]) -> list[Credit]:
    """Return the credits for these intents."""
    asked = [_CREDITS.where(CreditRow.intent_id.in_(part)) for part in chunks(intent_ids)]
    return [rows.credit_of(row) for each in asked for row in source.execute(each)]


def events(source: Connection, intent_ids: Sequence[str]) -> list[IntentEvent]:
    """Return all events of intents."""
    asked = [_EVENTS.where(EventRow.intent_id.in_(part)) for part in chunks(intent_ids)]
    return [IntentEvent(*row) for each in asked for row in source.execute(each)]


def pins(source: Connection, jobs: Sequence[str]) -> list[Pin]:
    """Return all pins of jobs."""
    return [each for part in chunks(jobs) for each in _pins(source, PinRow.job.in_(part))]


def would_be(source: Connection, jobs: Sequence[str]) -> list[WouldBeStop]:
    """Return all would-be stops of jobs."""
    asked = [_WOULD_BE.where(WouldBeRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.would_be_of(row) for each in asked for row in source.execute(each)]


def remarks(source: Connection, subjects: Sequence[str]) -> list[Remark]:
    """Return the remarks on subjects, in the order they were written."""
    asked = [_REMARKS.where(RemarkRow.subject.in_(part)) for part in chunks(subjects)]
    found = [tuple(row) for each in asked for row in source.execute(each)]
    return [Remark(*row[1:]) for row in sorted(found)]


_WATCHES = (
    select(*rows.WATCH_COLUMNS).select_from(WatchRow).join(JobRow, JobRow.job == WatchRow.job).join(LifeRow, _PRESENT)
)
_PINS = select(*rows.PIN_COLUMNS).select_from(PinRow).join(JobRow, JobRow.job == PinRow.job)
_INTENTS = select(*rows.INTENT_COLUMNS).select_from(IntentRow).join(JobRow, JobRow.job == IntentRow.job)
_LIVES = select(*rows.LIVED_COLUMNS).select_from(LifeRow).join(JobRow, JobRow.job == LifeRow.job)
_CREDITS = select(*rows.CREDIT_COLUMNS).select_from(CreditRow).join(JobRow, JobRow.job == CreditRow.job)
_EVENTS = select(*rows.EVENT_COLUMNS)
_WOULD_BE = select(*rows.WOULD_BE_COLUMNS).select_from(WouldBeRow).join(JobRow, JobRow.job == WouldBeRow.job)
_REMARKS = select(RemarkRow.id, *rows.REMARK_COLUMNS)


def _watches(source: Connection, *where: ColumnElement[bool], limit: int | None = None) -> list[Watch]:
    query = _WATCHES.where(*where).order_by(*_NEWEST).limit(limit)
    return [rows.watch_of(row) for row in source.execute(query)]


def _pins(source: Connection, where: ColumnElement[bool]) -> list[Pin]:
    return [rows.pin_of(row) for row in source.execute(_PINS.where(where))]


def _live_pins(source: Connection, live: ColumnElement[bool]) -> list[Pin]:
    query = _PINS.join(WatchRow, WatchRow.job == JobRow.job).where(live, PinRow.state != PinState.DROPPED)
    return [rows.pin_of(row) for row in source.execute(query)]


def _intents(source: Connection, where: ColumnElement[bool]) -> list[Intent]:
    return [rows.intent_of(row) for row in source.execute(_INTENTS.where(where))]


def _to_tend(source: Connection, cluster: str) -> list[Intent]:
    """Return what still wants something: open intents, closed ones that miss a note, a message's fate or a version."""
    here = select(IntentRow.id).join(JobRow, JobRow.job == IntentRow.job).where(JobRow.cluster == cluster)
    newest = (IntentRow.changed_s.desc(), IntentRow.id.desc())
    late = here.where(IntentRow.state.in_(CLOSED)).order_by(*newest).limit(order.RECENT_CLOSED)
    unnoted = or_(and_(IntentRow.state == State.CONFIRMED, IntentRow.handed_to == ()), IntentRow.telling != "")
    unregistered = and_(IntentRow.state == State.CONFIRMED, IntentRow.model.in_(sorted(PENDING)))
    wanted = or_(and_(IntentRow.id.in_(late), unnoted), and_(JobRow.cluster == cluster, unregistered))
    return _intents(source, wanted) + _intents(source, and_(JobRow.cluster == cluster, IntentRow.state.not_in(CLOSED)))


def _triggered(source: Connection, live: ColumnElement[bool]) -> dict[JobKey, int]:
    same_life = and_(IntentRow.restarts == WatchRow.restarts, IntentRow.submitted_s == WatchRow.submitted_s)
    query = (
        select(*rows.KEY, func.max(IntentRow.trigger_step))
        .join(WatchRow, WatchRow.job == JobRow.job)
        .join(IntentRow, and_(IntentRow.job == WatchRow.job, same_life))
        .group_by(*rows.KEY)
    )
    return {JobKey(*row[:4]): row[4] for row in source.execute(query.where(live))}


def _booked(source: Connection, live: ColumnElement[bool]) -> frozenset[JobKey]:
    same_life = and_(WouldBeRow.restarts == WatchRow.restarts, WouldBeRow.submitted_s == WatchRow.submitted_s)
    query = (
        select(*rows.KEY)
        .join(WatchRow, WatchRow.job == JobRow.job)
        .join(WouldBeRow, and_(WouldBeRow.job == WatchRow.job, same_life))
    )
    return frozenset(JobKey(*row) for row in source.execute(query.where(live)))


def _said(source: Connection, live: ColumnElement[bool]) -> frozenset[tuple[str, str]]:
    jobs = select(JobRow.job).join(WatchRow, WatchRow.job == JobRow.job).where(live)
    on_jobs = select(RemarkRow.subject, RemarkRow.code).where(RemarkRow.subject.in_(jobs))
    on_site = select(RemarkRow.subject, RemarkRow.code).where(RemarkRow.subject == order.SITE)
    return frozenset((row[0], row[1]) for row in source.execute(on_jobs.union(on_site)))
