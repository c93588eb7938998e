"""Which version a store has, and that it is the one this program was written for."""

from sqlalchemy import Connection, column, inspect, select, table
from sqlalchemy.engine import URL

from evalstopd.errors import Fatal
from evalstopd.store.engine import shown
from evalstopd.store.tables import REVISION, VERSION_TABLE

_REMEDY = "run `evalstopd db upgrade`"


def read_version(connection: Connection) -> str | None:
    """Return the store's version, None for one without any."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    return None if found is None else str(found)


def require_version(connection: Connection, url: URL) -> None:
    """Raise Fatal unless the store has this program's version."""
    require(read_version(connection), url)


def require(found: str | None, url: URL) -> None:
    """Raise Fatal, naming both versions and the remedy, unless a version is this program's."""
    if found == REVISION:
        return
    if found is None:
        raise Fatal(f"the store at {shown(url)} is empty, this program needs version {REVISION}: {_REMEDY}")
    has = f"the store at {shown(url)} has version {found!a}, this program needs {REVISION}"
    if found > REVISION:
        raise Fatal(f"{has}: use the newer program that made it (`evalstopd db upgrade` never goes back)")
    raise Fatal(f"{has}: {_REMEDY}")
