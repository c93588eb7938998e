"""From nothing to this program's version, and what is said of a store that is of another."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from evalstopd_migrations import runner
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from evalstopd.errors import Fatal, Misconfigured, Unavailable
from evalstopd.ports import Book, Changes
from evalstopd.store import migrate
from evalstopd.store.engine import connect, parse
from evalstopd.store.sql import SqlStore
from evalstopd.store.tables import REVISION, VERSION_TABLE, Base
from tests.contracts.store_builders import watch


def sql(url: str, *statements: str) -> None:
    engines = connect(parse(url), create=True)
    with engines.write.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engines.dispose()


def test_an_empty_store_is_brought_up_and_may_be_brought_up_again(empty_url: str) -> None:
    """An upgrade of an upgraded store keeps all that it has."""
    assert migrate.current(empty_url) is None
    migrate.upgrade(empty_url)
    store = SqlStore(empty_url)
    store.record(Changes(watches=(watch(),)))
    migrate.upgrade(empty_url)

    assert migrate.current(empty_url) == REVISION == "0001"
    assert store.find("7") == (watch(),)
    migrate.check(empty_url)
    store.close()


def test_the_migrations_make_the_very_tables_that_the_program_has(url: str) -> None:
    """Alembic finds no difference in tables, columns, types, indexes and constraints."""
    engines = connect(parse(url))
    with engines.read.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        found = compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)
    engines.dispose()

    assert found == []


def test_the_program_asks_for_the_newest_revision() -> None:
    """A revision added without raising the program's number is noticed."""
    assert ScriptDirectory.from_config(runner.config()).get_heads() == [REVISION]


def test_an_empty_store_is_named_with_the_command_that_helps(empty_url: str) -> None:
    """One line, for the check and for a store that is opened all the same."""
    if empty_url.startswith("sqlite"):
        Path(empty_url.removeprefix("sqlite:///")).touch()
    with pytest.raises(Fatal, match=r"^the store at \S+ is empty, .* needs version 0001: run `evalstopd db upgrade`$"):
        migrate.check(empty_url)


def test_a_missing_sqlite_file_is_named_by_the_check_and_is_not_made(tmp_path: Path) -> None:
    """Looking at a store must not bring a file into being, nor may a slip in its path look like an empty store."""
    url = f"sqlite:///{tmp_path}/none.db"
    words = r"^there is no file at sqlite:///\S+none.db \(store.url\): `evalstopd db upgrade` makes a new store there"
    with pytest.raises(Fatal, match=words):
        migrate.check(url)
    with pytest.raises(Unavailable, match="unable to open"):
        SqlStore(url).book("alpha")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("version", "remedy"), [("0000", "run `evalstopd db upgrade`"), ("0002", "never goes back")])
def test_another_version_is_named_beside_ours(url: str, version: str, remedy: str) -> None:
    """Neither the check nor any call of the store works on tables of another version."""
    sql(url, f"UPDATE {VERSION_TABLE} SET version_num = '{version}'")
    store = SqlStore(url)
    for act in (lambda: migrate.check(url), lambda: store.book("alpha"), lambda: store.record(Changes())):
        with pytest.raises(Fatal, match=rf"has version '{version}', this program needs 0001.*{remedy}"):
            act()
    with pytest.raises(Fatal):
        migrate.upgrade(url)
    store.close()


def test_a_store_opened_before_it_has_tables_is_refused(empty_url: str) -> None:
    """Nothing is written into a database without our version."""
    sql(empty_url, "CREATE TABLE other (n INTEGER)", "DROP TABLE other")
    store = SqlStore(empty_url)
    with pytest.raises(Fatal, match="evalstopd db upgrade"):
        store.record(Changes(watches=(watch(),)))
    store.close()


def test_a_database_of_another_program_is_left_alone(empty_url: str) -> None:
    """MLflow's database has tables of the same names and an alembic_version too."""
    sql(empty_url, "CREATE TABLE alembic_version (version_num VARCHAR(32))", "CREATE TABLE jobs (id INTEGER)")
    with pytest.raises(Misconfigured, match="another program"):
        migrate.upgrade(empty_url)

    assert migrate.current(empty_url) is None


def test_an_upgrade_that_fails_half_way_leaves_nothing(empty_url: str) -> None:
    """The last table of the revision cannot be made: the first ones are gone again."""
    engines = connect(parse(empty_url), create=True)
    with engines.write.connect() as connection:
        connection.execute(text("CREATE TABLE remarks (id INTEGER)"))
        with pytest.raises(DBAPIError, match="remarks"):
            runner.run(connection, REVISION, VERSION_TABLE)
    engines.dispose()

    migrate.upgrade(empty_url)
    migrate.check(empty_url)


def test_two_upgrades_at_once_make_one_store(empty_url: str) -> None:
    """Two daemons that are started together do not trip over each other."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: migrate.upgrade(empty_url), range(2)))

    migrate.check(empty_url)


def test_paths_with_signs_that_mean_something_elsewhere(tmp_path: Path) -> None:
    """Percent, question mark, hash, space and undecodable bytes in a path are but names."""
    folder = tmp_path / "50% off?#x y\udcff"
    folder.mkdir()
    url = parse(f"sqlite:///{tmp_path}/x").set(database=str(folder / "store.db"))
    engines = connect(url, create=True)
    with engines.write.begin() as connection:
        runner.run(connection, REVISION, VERSION_TABLE)
    engines.dispose()

    assert (folder / "store.db").stat().st_size > 0


@pytest.mark.parametrize(
    "url",
    [
        "",
        "store.db",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://root:secret@host/db",
        "sqlite:///file:x?mode=memory&uri=true",
        "postgresql://u:secret@localhost:port/db",
    ],
)
def test_a_url_that_cannot_be_a_store_is_refused_without_its_password(url: str) -> None:
    """Settings are shown in logs: no part of them that is secret may be in a message."""
    with pytest.raises(Misconfigured, match=r"^store\.url") as caught:
        migrate.check(url)

    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path, postgresql_url: str) -> None:
    """A database that is down costs a pass, not the daemon, and its password stays untold."""
    url = f"postgresql://tests:secret@/x?host={tmp_path}&password=secret"
    for act in (lambda: migrate.check(url), lambda: SqlStore(url).book("alpha")):
        with pytest.raises(Unavailable) as caught:
            act()
        assert "secret" not in str(caught.value)


def test_a_database_in_another_encoding_is_refused(postgresql_url: str) -> None:
    """Names in any script must fit."""
    engine = create_engine(parse(postgresql_url), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0"))
    with pytest.raises(Misconfigured, match="UTF8"):
        migrate.upgrade(postgresql_url.replace("/postgres", "/latin"))


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of mounts says that the folder, reached by a link, is on NFS."""
    real, link, mounts = tmp_path / "real", tmp_path / "link", tmp_path / "mountinfo"
    real.mkdir()
    link.symlink_to(real)
    mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {real} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(migrate, "_MOUNTS", mounts)
    for act in (migrate.check, migrate.upgrade):
        with pytest.raises(Misconfigured, match="nfs4"):
            act(f"sqlite:///{link}/store.db")

    assert list(real.iterdir()) == []


def test_the_database_file_is_set_up_as_the_daemon_needs_it(tmp_path: Path) -> None:
    """Write-ahead log, foreign keys, every commit on the disk."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    engines = connect(parse(url))
    with engines.write.connect() as connection:
        names = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]
    engines.dispose()

    assert found == ["wal", 1, 2, 5000]


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    """A damaged file is reported in the driver's words."""
    (tmp_path / "store.db").write_text("not a database at all" * 100)
    with pytest.raises(Unavailable, match="not a database"):
        migrate.check(f"sqlite:///{tmp_path}/store.db")


def test_the_store_in_memory_and_the_check_stay_light() -> None:
    """The simulator loads no sqlalchemy, the daemon's check and store no alembic."""
    for module, heavy in (("memory", "sqlalchemy"), ("migrate", "alembic"), ("sql", "alembic")):
        code = f"import sys, evalstopd.store.{module}; sys.exit({heavy!r} in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_reader_sees_one_state_while_another_writes(url: str) -> None:
    """A book is not torn by a writing between two of its questions."""
    store, engines = SqlStore(url), connect(parse(url))
    with engines.read.begin() as reader:
        before = reader.execute(text("SELECT count(*) FROM watches")).scalar()
        store.record(Changes(watches=(watch(),)))
        after = reader.execute(text("SELECT count(*) FROM watches")).scalar()
    engines.dispose()

    assert (before, after) == (0, 0)
    assert store.book("alpha") == Book(watches=(watch(),))
    store.close()


def test_sqlite_is_new_enough_to_upsert() -> None:
    """ON CONFLICT DO UPDATE came with 3.24, 32,766 parameters with 3.32."""
    assert sqlite3.sqlite_version_info >= (3, 32)
