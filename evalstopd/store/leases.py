"""Who leads, in the database: one row a lease, and its time by the database's own clock, which all daemons share."""

from sqlalchemy import ColumnElement, Connection, Double, cast, func, literal_column, select, update
from sqlalchemy.dialects import postgresql, sqlite

from evalstopd.ports import Lease
from evalstopd.store import turns
from evalstopd.store.tables import LeaseRow
from evalstopd.store.turns import Held

# Not now(): that stands still in a transaction, which may have waited long for its turn.
_POSTGRESQL_NOW = func.extract("epoch", func.clock_timestamp())
_SQLITE_NOW: ColumnElement[float] = literal_column("(julianday('now') - 2440587.5) * 86400.0")


def take(to: Connection, name: str, holder: str, for_s: float) -> Lease:
    """Give the lease if it is the holder's, free or over; return it as it is then. In one writing transaction."""
    held, now_s = _held(to, name), _now_s(to)
    after = turns.given(held, holder, for_s, now_s)
    if after is not None:
        _put(to, name, after)
    return turns.lease_of(after or held or Held(holder, 0, now_s), now_s)


def resign(to: Connection, name: str, holder: str) -> None:
    """End a holder's lease now; somebody else's stays."""
    to.execute(update(LeaseRow).where(LeaseRow.name == name, LeaseRow.holder == holder).values(until_s=_now_s(to)))


def claim(to: Connection, name: str, epoch: int, cluster: str) -> None:
    """Note which cluster the lease leads. Raises Deposed where another that lasts leads it. In one transaction."""
    others = {other: its for other, its in _of_cluster(to, cluster).items() if other != name}
    _put(to, name, turns.claimed(name, _held(to, name), epoch, cluster, others, _now_s(to)))
    for other, its in others.items():
        _put(to, other, turns.unclaimed(its))


def leading(source: Connection, cluster: str) -> tuple[str, ...]:
    """Return the names of the leases that lead a cluster now."""
    now_s = _now_s(source)
    return tuple(sorted(name for name, its in _of_cluster(source, cluster).items() if its.until_s > now_s))


def leader(source: Connection, name: str) -> Lease | None:
    """Return the lease as it is, over or not; None if nobody ever had it."""
    held = _held(source, name)
    return None if held is None else turns.lease_of(held, _now_s(source))


def require_epoch(source: Connection, name: str, epoch: int) -> None:
    """Raise Deposed where the lease has been given to another since this epoch."""
    turns.require_epoch(_held(source, name), epoch)


def _held(source: Connection, name: str) -> Held | None:
    kept = (LeaseRow.holder, LeaseRow.epoch, LeaseRow.until_s, LeaseRow.cluster)
    found = source.execute(select(*kept).where(LeaseRow.name == name)).first()
    return None if found is None else Held(*found)


def _of_cluster(source: Connection, cluster: str) -> dict[str, Held]:
    names = source.execute(select(LeaseRow.name).where(LeaseRow.cluster == cluster)).scalars()
    return {name: held for name in names if (held := _held(source, name)) is not None}


def _put(to: Connection, name: str, held: Held) -> None:
    insert = sqlite.insert(LeaseRow) if to.dialect.name == "sqlite" else postgresql.insert(LeaseRow)
    values = {"holder": held.holder, "epoch": held.epoch, "until_s": held.until_s, "cluster": held.cluster}
    to.execute(insert.values(name=name, **values).on_conflict_do_update(index_elements=[LeaseRow.name], set_=values))


def _now_s(source: Connection) -> float:
    now = _SQLITE_NOW if source.dialect.name == "sqlite" else _POSTGRESQL_NOW
    return float(source.execute(select(cast(now, Double))).scalar_one())
