"""What jobs of the past used of their limits, in the SQL store: one row a kin, one a cluster for how far was read."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from evalstopd.core.estimates import History, Kin, Tally
from evalstopd.store import order
from evalstopd.store.tables import HabitRow, HistoryRow

_COLUMNS = (HabitRow.user, HabitRow.account, HabitRow.name, HabitRow.at_s, HabitRow.ended, HabitRow.cut)


def read_s(source: Connection, cluster: str) -> float | None:
    """Return up to when accounting has been read."""
    return source.scalar(select(HistoryRow.read_s).where(HistoryRow.cluster == cluster))


def history(source: Connection, cluster: str) -> History | None:
    """Return what is known of a cluster's jobs; None where nothing was ever read."""
    until_s = read_s(source, cluster)
    if until_s is None:
        return None
    found = source.execute(select(*_COLUMNS).where(HabitRow.cluster == cluster))
    return History(until_s, {Kin(*row[:3]): Tally(row[3], list(row[4]), list(row[5])) for row in found})


def note(
    to: Connection,
    cluster: str,
    since_s: float | None,
    until_s: float,
    changed: Mapping[Kin, Tally],
    gone: Collection[Kin],
) -> None:
    """Write tallies and how far was read. Raises Rejected where that is another moment than `since_s`."""
    order.check_read(cluster, since_s, read_s(to, cluster))
    for kin in gone:
        to.execute(
            delete(HabitRow).where(
                HabitRow.cluster == cluster,
                HabitRow.user == kin.user,
                HabitRow.account == kin.account,
                HabitRow.name == kin.name,
            )
        )
    _replace(to, HabitRow, [_values(cluster, kin, tally) for kin, tally in changed.items()])
    _replace(to, HistoryRow, [{"cluster": cluster, "read_s": until_s}])


def _values(cluster: str, kin: Kin, tally: Tally) -> dict[str, object]:
    counts = {"at_s": tally.at_s, "ended": tuple(tally.ended), "cut": tuple(tally.cut)}
    return {"cluster": cluster, **kin._asdict(), **counts}


def _replace(to: Connection, kind: type[HabitRow | HistoryRow], values: list[dict[str, object]]) -> None:
    if not values:
        return
    insert = sqlite.insert(kind) if to.dialect.name == "sqlite" else postgresql.insert(kind)
    key = [column.name for column in kind.__table__.primary_key]
    fresh = {name: column for name, column in insert.excluded.items() if name not in key}
    to.execute(insert.on_conflict_do_update(index_elements=key, set_=fresh), values)
