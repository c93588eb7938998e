"""What the SQL store holds of jobs long over: pins that may go, and points and watches that may be forgotten."""

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, or_, select

from evalstopd.core.chain import Appended
from evalstopd.core.watch import Pin
from evalstopd.store import order, rows
from evalstopd.store.tables import Base, IntentRow, JobRow, LifeRow, PinRow, PointRow, WatchRow, WouldBeRow
from evalstopd.store.writing import append


def old_pins(source: Connection, cluster: str, over_before_s: float, most: int) -> list[Pin]:
    """Return pins of jobs over since before a moment that no stop was done to, the oldest first."""
    touched = or_(IntentRow.state.not_in(order.GIVEN_UP), IntentRow.acted_s.is_not(None), IntentRow.cancel_tries > 0)
    query = (
        select(*rows.PIN_COLUMNS)
        .select_from(PinRow)
        .join(JobRow, JobRow.job == PinRow.job)
        .join(WatchRow, WatchRow.job == PinRow.job)
        .where(_over(cluster, over_before_s), PinRow.state.in_(order.ON_DISK))
        .where(~exists().where(IntentRow.job == PinRow.job, touched))
        .order_by(WatchRow.vanished_s, PinRow.job, PinRow.step)
        .limit(most)
    )
    return [rows.pin_of(row) for row in source.execute(query)]


def prune(to: Connection, cluster: str, over_before_s: float, most: int) -> int:
    """Forget points, watches, lives and pins' rows of so many jobs over since before a moment; return how many.

    A job with a decision keeps all: the decision can be folded again. So does one with a pin on the disk. The chain
    tells of each job that it was forgotten.
    """
    query = (
        select(WatchRow.job)
        .join(JobRow, JobRow.job == WatchRow.job)
        .where(_over(cluster, over_before_s))
        .where(~exists().where(IntentRow.job == WatchRow.job), ~exists().where(WouldBeRow.job == WatchRow.job))
        .where(~exists().where(PinRow.job == WatchRow.job, PinRow.state.in_(order.ON_DISK)))
        .order_by(WatchRow.vanished_s)
        .limit(most)
    )
    jobs = list(to.scalars(query))
    kinds: tuple[type[Base], ...] = (PointRow, PinRow, WatchRow, LifeRow)
    for kind in kinds:
        column = kind.__table__.c["job"]
        to.execute(delete(kind.__table__).where(column.in_(jobs)))  # type: ignore[arg-type]
    append(to, Appended(forgotten=jobs))
    return len(jobs)


def _over(cluster: str, before_s: float) -> ColumnElement[bool]:
    gone = func.coalesce(WatchRow.vanished_s, WatchRow.first_s) < before_s
    return and_(JobRow.cluster == cluster, WatchRow.over.is_(True), gone)
