"""A whole copy of an SQLite store while the daemon goes on, and whether a store's file is sound."""

import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import URL

from evalstopd.errors import Fatal, Rejected, Unavailable, WrongUsage
from evalstopd.store.engine import connect, parse, shown, sqlite_file
from evalstopd.store.failures import translated
from evalstopd.store.migrate import check_whole
from evalstopd.store.readers import StillConnection, only_readable, open_to_read

_PAGES = 1000
_MOST_FAULTS = 5


def backup(url: str, target: Path) -> int:
    """Copy an SQLite store of this version into a new file that only its owner may read; return its bytes.

    The copy is of one moment, and sound: it is checked before it gets its name. Raises WrongUsage where the target is
    no name for a new file, Rejected for PostgreSQL, Fatal for a store that lacks some of its schema, Unavailable where
    reading or writing fails.
    """
    _require_new(target)
    check_whole(url)
    parsed = parse(url)
    file = sqlite_file(parsed)
    if file is None:
        raise Rejected(
            f"PostgreSQL has its own: pg_dump --format=custom --file=FILE {_for_libpq(parsed)} "
            "(a password it takes from ~/.pgpass, or asks for)"
        )
    draft = target.with_name(f".{target.name}.part-{os.getpid()}")
    try:
        _copy(file, draft)
        os.link(draft, target)  # unlike a rename, this replaces no file that came meanwhile
        return target.stat().st_size
    except FileExistsError:
        raise _taken(target) from None
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"the backup failed: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _for_libpq(url: URL) -> str:
    """Return the address as PostgreSQL's own programs take it, as one word of a shell's, without any password."""
    kept = {name: value for name, value in url.query.items() if "password" not in name.lower()}
    address = url.set(drivername="postgresql", query=kept)._replace(password=None).render_as_string(hide_password=False)
    before, mark, query = address.partition("?")
    return shlex.quote(ascii(f"{before}{mark}{query.replace('+', '%20')}")[1:-1])  # libpq takes a + for itself


def _require_new(target: Path) -> None:
    """Raise WrongUsage, with what to do, for a name that no new file can have."""
    try:
        target.lstat()
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise WrongUsage(f"there is no folder {str(target.parent)!a} to write the backup to: make it") from None
        return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise WrongUsage(f"the backup cannot be written to {str(target)!a}: {why}") from None
    if target.is_dir():
        raise WrongUsage(f"the backup needs the name of a new file, and {str(target)!a} is a folder")
    raise _taken(target)


def _taken(target: Path) -> WrongUsage:
    return WrongUsage(f"{str(target)!a} is there already: name a new file")


def require_sound(url: str) -> str:
    """Return in words what was checked of a store's soundness. Raises Fatal with the first faults otherwise."""
    parsed = parse(url)
    if sqlite_file(parsed) is None:
        return "PostgreSQL keeps its own integrity (pg_amcheck looks deeper)"
    engines = connect(parsed)
    try:
        with translated(parsed), engines.read.begin() as connection:
            said = [str(row[0]) for row in connection.execute(text(f"PRAGMA integrity_check({_MOST_FAULTS})"))]
            orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
    finally:
        engines.dispose()
    faults = [each for each in said if each != "ok"] + [f"a row of {row[0]} points nowhere" for row in orphans]
    if faults:
        raise Fatal(f"the store at {shown(parsed)} is damaged: {'; '.join(faults[:_MOST_FAULTS])!a}")
    return "every page and every reference is sound"


def _source(file: Path) -> sqlite3.Connection:
    if only_readable(file):
        return open_to_read(file)
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)


def _copy(file: Path, draft: Path) -> None:
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with (
        closing(_source(file)) as source,
        closing(sqlite3.connect(draft)) as copy,
    ):
        source.backup(copy, pages=_PAGES)
        if isinstance(source, StillConnection):
            source.require_still()
        # As one file: nothing beside it must be carried along.
        copy.execute("PRAGMA journal_mode=DELETE")
        (said,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {said}")
    with draft.open("rb") as written:
        os.fsync(written.fileno())
