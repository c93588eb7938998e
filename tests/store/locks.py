"""Whether a daemon works on an SQLite store, for tests: they have the store not open themselves while they ask."""

import fcntl
from pathlib import Path


def is_locked(url: str) -> bool:
    with Path(url.removeprefix("sqlite:///")).open("rb") as looked:
        try:
            fcntl.flock(looked, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
