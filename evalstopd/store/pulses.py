"""The last sign of life of each daemon, one row a daemon."""

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from evalstopd.ports import Pulse
from evalstopd.store.order import UNHEARD_S
from evalstopd.store.tables import PulseRow

_COLUMNS = (
    PulseRow.name, PulseRow.pid, PulseRow.at_s, PulseRow.good_s, PulseRow.leads, PulseRow.version, PulseRow.digest,
    PulseRow.summary, PulseRow.holder, PulseRow.ended,
)  # fmt: skip


def note(to: Connection, pulse: Pulse) -> None:
    """Put a daemon's sign of life in the place of its last one; forget those unheard of for a week."""
    to.execute(delete(PulseRow).where(PulseRow.at_s < pulse.at_s - UNHEARD_S))
    insert = sqlite.insert(PulseRow) if to.dialect.name == "sqlite" else postgresql.insert(PulseRow)
    values = {column.key: getattr(pulse, column.key) for column in _COLUMNS}
    fresh = {name: value for name, value in values.items() if name != "name"}
    to.execute(insert.values(values).on_conflict_do_update(index_elements=[PulseRow.name], set_=fresh))


def all_of(source: Connection) -> tuple[Pulse, ...]:
    """Return the last sign of life of each daemon, by name."""
    return tuple(
        sorted((Pulse(**row._asdict()) for row in source.execute(select(*_COLUMNS))), key=lambda each: each.name)
    )
