"""One daemon for one SQLite file: a lock on the file itself that ends with the process, however that ends."""

import fcntl
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from evalstopd.errors import Unavailable
from evalstopd.store.engine import parse, sqlite_file
from evalstopd.store.readers import keep_readable


@dataclass(frozen=True, slots=True)
class FileLock:
    """A locked store.

    `handle` is of the very file that bore the name then; `readable` keeps SQLite's files beside it.
    """

    file: Path
    handle: int
    readable: sqlite3.Connection

    @property
    def replaced(self) -> bool:
        """Tell whether the store's name is now that of another file, which this process has not locked.

        A name that is gone, or cannot be looked at, is none: whoever opens the store then says so.
        """
        try:
            now = self.file.stat()
        except OSError:
            return False
        return not os.path.samestat(now, os.fstat(self.handle))

    def release(self) -> None:
        """Let another process have the store."""
        self.readable.close()
        fcntl.flock(self.handle, fcntl.LOCK_UN)


def lock_alone(url: str) -> FileLock | None:
    """Lock an SQLite store until it is released, or the process ends; None, and nothing, for PostgreSQL.

    Who may only read the store can do so meanwhile.

    Raises Unavailable where another process has it, or the file cannot be opened. SQLite's own locks are of another
    kind (fcntl): these two never meet.
    """
    file = sqlite_file(parse(url))
    if file is None:
        return None
    try:
        # Never closed: that would end the locks SQLite holds on this file in this process, too.
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Unavailable(
            f"another evalstopd works on {str(file)!a}: SQLite serves one daemon, PostgreSQL a pair"
        ) from None
    except OSError as error:
        raise Unavailable(f"{str(file)!a} cannot be locked: {error.strerror}") from None
    try:
        readable = keep_readable(file)
    except sqlite3.Error as error:
        raise Unavailable(f"{str(file)!a} cannot be opened: {error}") from None
    return FileLock(file, handle, readable)
