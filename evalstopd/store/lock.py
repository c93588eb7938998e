"""One daemon for one SQLite file: a lock on the file itself that ends with the process, however that ends."""

import fcntl
import os

from evalstopd.errors import Unavailable
from evalstopd.store.engine import parse, sqlite_file


def lock_alone(url: str) -> bool:
    """Lock an SQLite store for as long as this process lives; False, and nothing is done, for PostgreSQL.

    Raises Unavailable where another process has it, or the file cannot be opened. SQLite's own locks are of another
    kind (fcntl): these two never meet.
    """
    file = sqlite_file(parse(url))
    if file is None:
        return False
    try:
        # Never closed: that would end the locks SQLite holds on this file in this process, too.
        fcntl.flock(os.open(file, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Unavailable(
            f"another evalstopd works on {str(file)!a}: SQLite serves one daemon, PostgreSQL a pair"
        ) from None
    except OSError as error:
        raise Unavailable(f"{str(file)!a} cannot be locked: {error.strerror}") from None
    return True
