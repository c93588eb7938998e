"""From the store's URL to engines that read and write: SQLite or PostgreSQL, set up alike for both."""

import sqlite3
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from evalstopd.errors import Misconfigured
from evalstopd.store.readers import StillConnection, log_of, only_readable, open_to_read, quoted

_PATIENCE_S = 5
# One word shared by all daemons on a database: writers come one after another.
_WRITERS = 0x65766C73


@dataclass(frozen=True, slots=True)
class Engines:
    """Two ways into one database: `read` sees one state throughout a transaction, `write` excludes other writers."""

    read: Engine
    write: Engine

    def dispose(self) -> None:
        """Close the connections that are kept open."""
        self.read.dispose()


def parse(url: str) -> URL:
    """Read a store's URL. Raises Misconfigured, without showing a password, unless it is SQLite's or PostgreSQL's."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise Misconfigured("store.url is not of the form sqlite:////path/file or postgresql://host/name") from None
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        raise Misconfigured(f"store.url: {parsed.get_backend_name()!a} is neither sqlite nor postgresql")
    if parsed.database in (None, "", ":memory:") or parsed.query:
        raise Misconfigured(
            "store.url: SQLite needs a file and no options, as in sqlite:////var/lib/evalstopd/store.db"
        )
    return parsed


def shown(url: URL) -> str:
    """Return the URL without its password and its options, which may hold one too; fit for a line."""
    return ascii(url.set(query={}).render_as_string(hide_password=True))[1:-1]


def sqlite_file(url: URL) -> Path | None:
    """Return the file of an SQLite store, None for PostgreSQL."""
    return Path(url.database or "").absolute() if url.get_backend_name() == "sqlite" else None


def connect(url: URL, *, create: bool = False) -> Engines:
    """Return the engines of a store; nothing is opened yet. Only `create` may make a new SQLite file.

    Raises Misconfigured where the driver of PostgreSQL is not installed.
    """
    file = sqlite_file(url)
    return _postgresql(url) if file is None else _sqlite(url, file, create=create)


def _sqlite(url: URL, file: Path, *, create: bool) -> Engines:
    # A connection for each transaction: it belongs to the calling thread, and a file that was
    # moved away is noticed instead of written to unseen.
    read, write = (
        create_engine(url, creator=opener, poolclass=NullPool, hide_parameters=True)
        for opener in (partial(_opened_to_read, file), partial(_opened, file, "rwc" if create else "rw"))
    )
    for engine in (read, write):
        event.listen(engine, "begin", _begin)
        event.listen(engine, "commit", _still)
    return Engines(read, write.execution_options(writes=True))


def _opened_to_read(file: Path) -> sqlite3.Connection:
    """Open a store's file so that it stays as it is, byte by byte: a mode that it does not have is a writer's to set.

    Where a write-ahead log lies beside it, a connection that may write would write it into the file at its end.
    """
    if only_readable(file):
        return open_to_read(file)
    mode = "ro" if log_of(file).exists() else "rw"
    return sqlite3.connect(_address(file, mode), uri=True, timeout=_PATIENCE_S, isolation_level=None)


def _opened(file: Path, mode: str) -> sqlite3.Connection:
    if mode == "rw" and only_readable(file):
        return open_to_read(file)
    connection = sqlite3.connect(_address(file, mode), uri=True, timeout=_PATIENCE_S, isolation_level=None)
    try:
        # FULL: what is recorded before an act must outlive a power cut; NORMAL may lose the last commits.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _address(file: Path, mode: str) -> str:
    return f"file:{quoted(file)}?mode={mode}"


def _still(connection: Connection) -> None:
    raw = connection.connection.dbapi_connection
    if isinstance(raw, StillConnection):
        raw.require_still()


def _begin(connection: Connection) -> None:
    # A reader that turns writer half-way fails at once when another wrote meanwhile: writers lock first.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgresql(url: URL) -> Engines:
    limits = f"-c statement_timeout={20 * _PATIENCE_S * 1000} -c lock_timeout={_PATIENCE_S * 1000}"
    # A daemon that stops or is cut off in the midst of a writing must not keep the writers' lock.
    limits += f" -c idle_in_transaction_session_timeout={2 * _PATIENCE_S * 1000}"
    limits = " ".join([limits, *url.normalized_query.get("options", ())])
    options: dict[str, object] = {"connect_timeout": _PATIENCE_S, "options": limits}
    options |= {"tcp_user_timeout": 2 * _PATIENCE_S * 1000, "keepalives_idle": _PATIENCE_S}
    options |= {"keepalives_interval": _PATIENCE_S, "keepalives_count": 2}
    try:
        from evalstopd.store.limited import LimitedConnection  # noqa: PLC0415  an extra that few sites need

        engine = create_engine(url, connect_args=options, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise Misconfigured("PostgreSQL needs psycopg: pip install 'evalstopd[postgresql]'") from error
    event.listen(engine, "do_connect", lambda dialect, record, given, named: LimitedConnection.connect(*given, **named))
    write = engine.execution_options(isolation_level="READ COMMITTED")
    event.listen(write, "begin", _lock)
    return Engines(engine.execution_options(isolation_level="REPEATABLE READ"), write)


def _lock(connection: Connection) -> None:
    connection.execute(select(func.pg_advisory_xact_lock(_WRITERS)))
