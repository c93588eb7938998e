"""The questions that the SQL store answers, each within the caller's transaction; `jobs` are job keys' texts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Executable, and_, func, select
from sqlalchemy.orm import Session

from evalstopd.core.intent import CLOSED, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey, Point
from evalstopd.core.watch import Pin, PinState, Remark, Watch
from evalstopd.ports import Book
from evalstopd.store import order, rows
from evalstopd.store.chunks import chunks
from evalstopd.store.tables import (
    BindingRow,
    EventRow,
    IntentRow,
    JobRow,
    LifeRow,
    PinRow,
    PointRow,
    RemarkRow,
    WatchRow,
    WouldBeRow,
)

# The order of the fields of Point, the job before them.
_POINT_COLUMNS = (
    PointRow.job,
    PointRow.run_id,
    PointRow.step,
    PointRow.value,
    PointRow.timestamp_ms,
    PointRow.life,
    PointRow.arrived_s,
    PointRow.stderr,
)
_NEWEST = (
    WatchRow.first_s.desc(),
    JobRow.cluster.desc(),
    JobRow.job_id.desc(),
    JobRow.uid.desc(),
    JobRow.submitted_s.desc(),
)


def book(session: Session, cluster: str) -> Book:
    """Return what is open on a cluster."""
    live = and_(JobRow.cluster == cluster, WatchRow.over.is_(False))
    return Book(
        watches=order.in_key_order(_watches(session, live)),
        pins=order.in_step_order(_live_pins(session, live)),
        intents=order.oldest_intents(_to_tend(session, cluster)),
        triggered=_triggered(session, live),
        booked=_booked(session, live),
        holders=_holders(session),
        said=_said(session, live),
    )


def points(session: Session, jobs: Sequence[str]) -> Mapping[str, list[Point]]:
    """Return the points of jobs, by the job."""
    found: dict[str, list[Point]] = defaultdict(list)
    for part in chunks(jobs):
        for job, *fields in session.execute(points_query(part)):
            found[job].append(Point(*fields))
    return found


def points_query(jobs: Sequence[str]) -> Executable:
    """Return the one statement that reads points, for a look at its plan too."""
    return select(*_POINT_COLUMNS).where(PointRow.job.in_(jobs))


def watches_of_id(session: Session, job_id: str) -> list[Watch]:
    """Return the watches of all jobs that have had an id."""
    return _watches(session, JobRow.job_id == job_id)


def newest_watches(session: Session, limit: int) -> list[Watch]:
    """Return the watches of the jobs first seen last."""
    return _watches(session, limit=limit)


def intents(session: Session, jobs: Sequence[str]) -> list[Intent]:
    """Return all intents of jobs."""
    return [each for part in chunks(jobs) for each in _intents(session, IntentRow.job.in_(part))]


def events(session: Session, intent_ids: Sequence[str]) -> list[IntentEvent]:
    """Return all events of intents."""
    asked = [select(EventRow).where(EventRow.intent_id.in_(part)) for part in chunks(intent_ids)]
    return [rows.event_of(row) for each in asked for row in session.scalars(each)]


def pins(session: Session, jobs: Sequence[str]) -> list[Pin]:
    """Return all pins of jobs."""
    asked = [_PINS.where(PinRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.pin_of(*row) for each in asked for row in session.execute(each)]


def would_be(session: Session, jobs: Sequence[str]) -> list[WouldBeStop]:
    """Return all would-be stops of jobs."""
    joined = select(JobRow, WouldBeRow).join(WouldBeRow, WouldBeRow.job == JobRow.job)
    asked = [joined.where(WouldBeRow.job.in_(part)) for part in chunks(jobs)]
    return [rows.would_be_of(*row) for each in asked for row in session.execute(each)]


def remarks(session: Session, subjects: Sequence[str]) -> list[Remark]:
    """Return the remarks on subjects, in the order they were written."""
    asked = [select(RemarkRow).where(RemarkRow.subject.in_(part)) for part in chunks(subjects)]
    found = sorted((row for each in asked for row in session.scalars(each)), key=lambda row: row.id)
    return [rows.remark_of(row) for row in found]


_PRESENT_LIFE = and_(
    LifeRow.job == WatchRow.job,
    LifeRow.restarts == WatchRow.restarts,
    LifeRow.submitted_s == WatchRow.submitted_s,
)
_WATCHES = (
    select(JobRow, LifeRow, WatchRow)
    .select_from(WatchRow)
    .join(JobRow, JobRow.job == WatchRow.job)
    .join(LifeRow, _PRESENT_LIFE)
)
_PINS = select(JobRow, PinRow).join(PinRow, PinRow.job == JobRow.job)


def _watches(session: Session, *where: ColumnElement[bool], limit: int | None = None) -> list[Watch]:
    query = _WATCHES.where(*where).order_by(*_NEWEST).limit(limit)
    return [rows.watch_of(*row) for row in session.execute(query)]


def _live_pins(session: Session, live: ColumnElement[bool]) -> list[Pin]:
    query = _PINS.join(WatchRow, WatchRow.job == JobRow.job).where(live, PinRow.state != PinState.DROPPED)
    return [rows.pin_of(*row) for row in session.execute(query)]


def _intents(session: Session, where: ColumnElement[bool]) -> list[Intent]:
    query = select(JobRow, IntentRow).join(IntentRow, IntentRow.job == JobRow.job).where(where)
    return [rows.intent_of(*row) for row in session.execute(query)]


def _to_tend(session: Session, cluster: str) -> list[Intent]:
    """Return the open intents, and those confirmed lately of which it is not noted who got their GPUs."""
    here = select(IntentRow.id).join(JobRow, JobRow.job == IntentRow.job).where(JobRow.cluster == cluster)
    newest = (IntentRow.changed_s.desc(), IntentRow.id.desc())
    late = here.where(IntentRow.state.in_(CLOSED)).order_by(*newest).limit(order.RECENT_CLOSED)
    unnoted = (IntentRow.state == State.CONFIRMED, IntentRow.handed_to == ())
    confirmed = _intents(session, and_(IntentRow.id.in_(late), *unnoted))
    return confirmed + _intents(session, and_(JobRow.cluster == cluster, IntentRow.state.not_in(CLOSED)))


def _triggered(session: Session, live: ColumnElement[bool]) -> dict[JobKey, int]:
    same_life = and_(IntentRow.restarts == WatchRow.restarts, IntentRow.submitted_s == WatchRow.submitted_s)
    newest = (
        select(IntentRow.job, func.max(IntentRow.trigger_step).label("step"))
        .join(WatchRow, and_(WatchRow.job == IntentRow.job, same_life))
        .group_by(IntentRow.job)
        .subquery()
    )
    query = select(JobRow, newest.c.step).join(newest, newest.c.job == JobRow.job)
    query = query.join(WatchRow, WatchRow.job == JobRow.job).where(live)
    return {rows.key_of(job): step for job, step in session.execute(query)}


def _booked(session: Session, live: ColumnElement[bool]) -> frozenset[JobKey]:
    same_life = and_(WouldBeRow.restarts == WatchRow.restarts, WouldBeRow.submitted_s == WatchRow.submitted_s)
    query = (
        select(JobRow)
        .join(WatchRow, WatchRow.job == JobRow.job)
        .join(WouldBeRow, and_(WouldBeRow.job == WatchRow.job, same_life))
    )
    return frozenset(rows.key_of(job) for job in session.scalars(query.where(live)))


def _holders(session: Session) -> dict[str, JobKey]:
    """Return who holds each run, on every cluster and ended jobs too: nobody else may take it over later."""
    last = select(func.max(BindingRow.id)).group_by(BindingRow.run_id)
    query = (
        select(BindingRow.run_id, JobRow.cluster, JobRow.job_id, JobRow.uid, JobRow.submitted_s)
        .join(JobRow, JobRow.job == BindingRow.job)
        .where(BindingRow.id.in_(last))
    )
    return {row[0]: JobKey(row[1], row[2], row[3], row[4]) for row in session.execute(query)}


def _said(session: Session, live: ColumnElement[bool]) -> frozenset[tuple[str, str]]:
    jobs = select(JobRow.job).join(WatchRow, WatchRow.job == JobRow.job).where(live)
    on_jobs = select(RemarkRow.subject, RemarkRow.code).where(RemarkRow.subject.in_(jobs))
    on_site = select(RemarkRow.subject, RemarkRow.code).where(RemarkRow.subject == order.SITE)
    return frozenset((row[0], row[1]) for row in session.execute(on_jobs.union(on_site)))
