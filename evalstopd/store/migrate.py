"""Bringing a store to this program's version, and checking it before the daemon starts."""

import os
import pwd
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import URL

from evalstopd.errors import Fatal, Misconfigured, Rejected, Unavailable
from evalstopd.store.engine import connect, parse, shown, sqlite_file
from evalstopd.store.failures import translated
from evalstopd.store.mounts import network_file_system
from evalstopd.store.schema import require_whole
from evalstopd.store.tables import REVISION, VERSION_TABLE
from evalstopd.store.version import read_version, require

_MOUNTS = Path("/proc/self/mountinfo")


def current(url: str) -> str | None:
    """Return the version of a store, None for one that is empty or not there.

    Raises Unavailable where it does not answer, Misconfigured for a URL that cannot be a store's.
    """
    parsed = parse(url)
    file = sqlite_file(parsed)
    if file is not None and not file.exists():
        return None
    engines = connect(parsed)
    try:
        with translated(parsed), engines.read.connect() as connection:
            return read_version(connection)
    finally:
        engines.dispose()


def check(url: str) -> None:
    """Raise Fatal unless the store has this program's version, Misconfigured where it lies or is made wrongly."""
    parsed = parse(url)
    _check_place(parsed)
    found = current(url)
    if found is None:
        _require_file(parsed)
    require(found, parsed)


def _require_file(url: URL) -> None:
    """Raise Fatal where there is no file: after a slip in the path an upgrade would make a second store."""
    file = sqlite_file(url)
    if file is not None and not file.exists():
        raise Fatal(
            f"there is no file at {shown(url)} (store.url): `evalstopd db upgrade` makes a new store there; if there "
            "should be one already, the path is another"
        )


def check_whole(url: str, *, indexes: bool = True) -> None:
    """Check as `check` does, and that all of its version's schema is there: raise Fatal, naming what is missing."""
    check(url)
    parsed = parse(url)
    engines = connect(parsed)
    try:
        with translated(parsed), engines.read.begin() as connection:
            require_whole(connection, parsed, indexes=indexes)
    finally:
        engines.dispose()


def upgrade(url: str) -> None:
    """Bring a store, empty or old, to this program's version, in one transaction.

    Raises Misconfigured for a database that has other tables, is on a network file system or is not in UTF-8,
    Fatal for one made by a newer program, Unavailable where it does not answer, Rejected for root in another
    account's folder.
    """
    parsed = parse(url)
    _check_place(parsed)
    _check_owner(parsed)
    engines = connect(parsed, create=True)
    try:
        with translated(parsed), engines.write.begin() as connection:
            _check_ours(connection, parsed)
            _migrate(connection, parsed)
    finally:
        engines.dispose()


def _check_place(url: URL) -> None:
    file = sqlite_file(url)
    if file is None:
        return
    folder = str(file.resolve().parent)
    if not os.path.isdir(folder):  # Path.is_dir raises where a folder above may not be passed
        raise Misconfigured(f"store.url: folder {folder!a} does not exist")
    if not os.access(folder, os.X_OK, effective_ids=True):
        raise Unavailable(f"the folder {folder!a} of the store may not be read by this account")
    mounts = _MOUNTS.read_bytes().decode(errors="surrogateescape")
    kind = network_file_system(mounts, folder)
    if kind is not None:
        raise Misconfigured(f"store.url: {folder!a} is on {kind}; SQLite needs a local disk, or use PostgreSQL")


def _check_owner(url: URL) -> None:
    """Refuse to work as root in a folder of another account: what root makes there its daemon cannot open.

    Nor is it given to that account afterwards: who owns the folder may put a link in the file's place at any moment.
    """
    file = sqlite_file(url)
    if file is None or os.geteuid() != 0:
        return
    owners = [path.parent.stat().st_uid for path in (file, file.resolve())]
    account = next((_account(uid) for uid in owners if uid != 0), None)
    if account is not None:
        raise Rejected(
            f"the folder of the store {str(file)!a} belongs to {account}, whose daemon could not open what root makes "
            f"there: run this as that account (runuser -u {account} -- evalstopd db upgrade)"
        )


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _check_ours(connection: Connection, url: URL) -> None:
    found = read_version(connection)
    if found is not None and found > REVISION:
        require(found, url)
    if found is None and set(inspect(connection).get_table_names()) - {VERSION_TABLE}:
        raise Misconfigured(f"store.url: {shown(url)} has tables of another program; evalstopd needs its own database")
    if connection.dialect.name == "postgresql":
        encoding = connection.scalar(text("SHOW server_encoding"))
        if encoding != "UTF8":
            raise Misconfigured(f"store.url: {shown(url)} is encoded in {encoding}; evalstopd needs UTF8")


def _migrate(connection: Connection, url: URL) -> None:
    # Alembic costs 12 MB: only an upgrade pays for it.
    from alembic.util import CommandError  # noqa: PLC0415
    from evalstopd_migrations.runner import run  # noqa: PLC0415

    try:
        run(connection, REVISION, VERSION_TABLE)
    except CommandError as error:
        raise Fatal(f"the store at {shown(url)} cannot be upgraded to version {REVISION}: {str(error)!a}") from error
