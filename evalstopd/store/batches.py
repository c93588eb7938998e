"""Points in the SQL store: each transaction's are a batch of their job's, which a link of the chain seals."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, func, select

from evalstopd.core.chain import Batch
from evalstopd.core.model import JobKey, Point
from evalstopd.store import rows
from evalstopd.store.chunks import chunks
from evalstopd.store.order import point_identity
from evalstopd.store.statements import insert_into, table_of
from evalstopd.store.tables import PointRow

Brought = Mapping[str, Sequence[Point]]
Identity = tuple[int, int, int, str, str, str]


def write_points(to: Connection, brought: Sequence[tuple[JobKey, Point]], number: int) -> list[Batch]:
    """Insert points as batches of this number, and return what is to be sealed.

    One that is there already stays, but takes a standard error that it did not have: its batch is sealed anew.
    """
    if not brought:
        return []
    values = [rows.point_values(key, point, number) for key, point in brought]
    fresh = insert_into(to, PointRow).on_conflict_do_nothing()
    added = to.execute(fresh, values, execution_options={"preserve_rowcount": True}).rowcount
    by_job: dict[str, list[Point]] = defaultdict(list)
    for key, point in brought:
        by_job[key.text].append(point)
    if added == len(values):
        return [Batch(job, number, points) for job, points in by_job.items()]
    return _known_before(to, by_job, values, number)


def batches_of(source: Connection, jobs: Sequence[str]) -> list[Batch]:
    """Return the points of jobs, batch by batch."""
    found: dict[tuple[str, int], list[Point]] = defaultdict(list)
    for part in chunks(jobs):
        for job, *fields, number in source.execute(select(*rows.BATCHED_COLUMNS).where(PointRow.job.in_(part))):
            found[(job, number)].append(Point(*fields))
    return [Batch(job, number, points) for (job, number), points in found.items()]


def _known_before(to: Connection, brought: Brought, values: Sequence[rows.Values], number: int) -> list[Batch]:
    """Add the standard errors that stored points lack; return the batches that are new or have changed by it."""
    changed = []
    for held in batches_of(to, list(brought)):
        errors = {point_identity(each): each.stderr for each in brought[held.job] if each.stderr is not None}
        now = [_completed(each, errors) for each in held.points]
        if held.number == number or now != list(held.points):
            changed.append(replace(held, points=now))
    insert = insert_into(to, PointRow)
    error = func.coalesce(table_of(PointRow).c.stderr, insert.excluded.stderr)
    key = list(table_of(PointRow).primary_key)
    to.execute(insert.on_conflict_do_update(index_elements=key, set_={"stderr": error}), values)
    return changed


def _completed(point: Point, errors: Mapping[Identity, float]) -> Point:
    return point if point.stderr is not None else replace(point, stderr=errors.get(point_identity(point)))
