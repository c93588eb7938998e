"""An SQLite store for who may read it but not write: beside the daemon at work, and while none works."""

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from evalstopd.errors import Unavailable

_PATIENCE_S = 5


class StillConnection(sqlite3.Connection):
    """A connection that takes no locks, to a file that nobody has open for writing."""

    file: Path
    found: tuple[int, ...]

    def require_still(self) -> None:
        """Raise Unavailable if the file was written to since it was opened: what was read may be of two moments."""
        if log_of(self.file).exists() or _mark(self.file) != self.found:
            raise Unavailable("the store was written to while it was read: try again")


def quoted(file: Path) -> str:
    """Return a path as it stands in the address of an SQLite file."""
    return quote(str(file), errors="surrogateescape")


def only_readable(file: Path) -> bool:
    """Tell whether this process may read a store's file, but not write it or make SQLite's files beside it."""
    writes = os.access(file, os.W_OK, effective_ids=True) and os.access(file.parent, os.W_OK, effective_ids=True)
    return not writes and os.access(file, os.R_OK, effective_ids=True)


def open_to_read(file: Path) -> sqlite3.Connection:
    """Open a store's file without writing anything, neither to it nor beside it.

    Where SQLite's files lie beside it (a daemon works, or one was killed), they are read, too. Where they do not,
    SQLite would have to make them; but then nobody writes, so that no locks are needed.
    """
    address = f"file:{quoted(file)}?mode=ro"
    if log_of(file).exists():
        return sqlite3.connect(address, uri=True, timeout=_PATIENCE_S, isolation_level=None)
    found = _mark(file)
    still = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None, factory=StillConnection)
    still.file, still.found = file, found
    return still


def keep_readable(file: Path) -> sqlite3.Connection:
    """Return a connection that keeps SQLite's files beside a store for as long as it is open: readers need them."""
    connection = sqlite3.connect(f"file:{quoted(file)}?mode=rw", uri=True, timeout=_PATIENCE_S, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def log_of(file: Path) -> Path:
    """Return where SQLite keeps a file's write-ahead log."""
    return file.with_name(f"{file.name}-wal")


def _mark(file: Path) -> tuple[int, ...]:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
