"""Points in the SQL store: each transaction's are a batch of their job's, which a link of the chain seals."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, Insert, func, select

from evalstopd.core.chain import Batch
from evalstopd.core.model import JobKey, Point
from evalstopd.store import rows
from evalstopd.store.chunks import chunks
from evalstopd.store.order import point_identity
from evalstopd.store.statements import insert_into, table_of
from evalstopd.store.tables import PointRow

# A daemon just started writes a hundred thousand points in one transaction; as rows they take much memory.
_AT_ONCE = 2_000
Brought = Mapping[str, Sequence[Point]]
Identity = tuple[int, int, int, str, str, str, str]


def write_points(to: Connection, brought: Sequence[tuple[JobKey, Point]], number: int) -> list[Batch]:
    """Insert points as batches of this number, and return what is to be sealed.

    One that is there already stays, but takes a standard error that it did not have: its batch is sealed anew.
    """
    if not brought:
        return []
    insert = insert_into(to, PointRow).on_conflict_do_nothing()
    added = sum(_insert(to, insert, part, number) for part in _parts(brought))
    by_job: dict[str, list[Point]] = defaultdict(list)
    for key, point in brought:
        by_job[key.text].append(point)
    if added == len(brought):
        return [Batch(job, number, points) for job, points in by_job.items()]
    changed = _changed(to, by_job, number)
    _complete(to, brought, number)
    return changed


def batches_of(source: Connection, jobs: Sequence[str]) -> list[Batch]:
    """Return the points of jobs, batch by batch."""
    found: dict[tuple[str, int], list[Point]] = defaultdict(list)
    for part in chunks(jobs):
        for job, *fields, number in source.execute(select(*rows.BATCHED_COLUMNS).where(PointRow.job.in_(part))):
            found[(job, number)].append(Point(*fields))
    return [Batch(job, number, points) for (job, number), points in found.items()]


def _changed(to: Connection, brought: Brought, number: int) -> list[Batch]:
    """Return the batches that are new, and those that standard errors change, as they will be then."""
    changed = []
    errors = {job: _errors(points) for job, points in brought.items()}
    for held in batches_of(to, list(brought)):
        now = [_completed(each, errors[held.job]) for each in held.points]
        if held.number == number or now != list(held.points):
            changed.append(replace(held, points=now))
    return changed


def _errors(points: Sequence[Point]) -> dict[Identity, float]:
    return {point_identity(each): each.stderr for each in points if each.stderr is not None}


def _complete(to: Connection, brought: Sequence[tuple[JobKey, Point]], number: int) -> None:
    """Add the standard errors that stored points lack."""
    insert = insert_into(to, PointRow)
    error = func.coalesce(table_of(PointRow).c.stderr, insert.excluded.stderr)
    key = list(table_of(PointRow).primary_key)
    upsert = insert.on_conflict_do_update(index_elements=key, set_={"stderr": error})
    for part in _parts(brought):
        _insert(to, upsert, part, number)


def _insert(to: Connection, how: Insert, part: Sequence[tuple[JobKey, Point]], number: int) -> int:
    """Insert points; return how many were not there, as far as the driver counts them."""
    values = [rows.point_values(key, point, number) for key, point in part]
    return to.execute(how, values, execution_options={"preserve_rowcount": True}).rowcount


def _parts(brought: Sequence[tuple[JobKey, Point]]) -> Iterator[Sequence[tuple[JobKey, Point]]]:
    return (brought[start : start + _AT_ONCE] for start in range(0, len(brought), _AT_ONCE))


def _completed(point: Point, errors: Mapping[Identity, float]) -> Point:
    return point if point.stderr is not None else replace(point, stderr=errors.get(point_identity(point)))
