"""Who may read an SQLite store but not write it: with a daemon at work, after its end, and after it was killed."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalstopd.core.chain import Head
from evalstopd.errors import Misconfigured, Unavailable
from evalstopd.ports import Changes
from evalstopd.report.audit.verify import verify
from evalstopd.store import migrate
from evalstopd.store.backup import backup, require_sound
from evalstopd.store.lock import lock_alone
from evalstopd.store.readers import StillConnection, log_of, open_to_read
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER, key

WRITER, READER, GROUP, NONE = 64001, 64002, 64003, 64009
# File and folder: open to the group alone, or to all.
MODES = ((0o640, 0o2750), (0o644, 0o755))


@contextmanager
def user(uid: int, *groups: int) -> Iterator[None]:
    """Be another account for a while, with these groups and no right of root's."""
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(groups[0] if groups else NONE)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


@pytest.fixture(params=MODES, ids=["group", "all"])
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield the writer's folder with a store that others may only read; pytest's own folders are root's alone."""
    if os.geteuid() != 0:
        pytest.skip("READERS OF THE STORE NOT TESTED: becoming another account needs root")
    file_mode, folder_mode = request.param
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    os.chown(folder, WRITER, GROUP)
    folder.chmod(folder_mode)
    with user(WRITER, GROUP):
        migrate.upgrade(url_of(folder))
        (folder / "store.db").chmod(file_mode)
        SqlStore(url_of(folder)).record(some("1"))
    yield folder
    shutil.rmtree(folder)


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


def some(job: str) -> Changes:
    planned = make.intent(key(job))
    return Changes(watches=(make.watch(key(job)),), intents=(planned,), events=(make.event(planned),))


def read_all(folder: Path, jobs: int) -> None:
    """Do as reader all that the reading commands rest on; nothing beside the store may come or go."""
    url, before = url_of(folder), sorted(folder.iterdir())
    with user(READER, GROUP), tempfile.TemporaryDirectory() as own:
        migrate.check(url)
        store = SqlStore(url)
        assert len(store.book(CLUSTER).watches) == jobs
        assert verify(store).good
        assert store.head() != Head()
        assert require_sound(url).startswith("every page")
        assert backup(url, Path(own) / "copy.db") > 0
    assert sorted(folder.iterdir()) == before


def test_a_store_is_read_where_no_daemon_works(place: Path) -> None:
    assert [each.name for each in place.iterdir()] == ["store.db"]

    read_all(place, 1)


def test_a_store_is_read_beside_a_daemon_and_what_it_writes_is_seen(place: Path) -> None:
    with user(WRITER, GROUP):
        lock = lock_alone(url_of(place))
        assert lock is not None
        writer = SqlStore(url_of(place))
    read_all(place, 1)
    with user(WRITER, GROUP):
        writer.record(some("2"))
    read_all(place, 2)
    with user(WRITER, GROUP):
        lock.release()
    read_all(place, 2)


def test_a_store_is_read_after_a_daemon_that_was_killed(place: Path) -> None:
    """What was committed stands in the log beside the file alone."""
    with user(WRITER, GROUP):
        child = os.fork()
        if child == 0:
            held = lock_alone(url_of(place))
            SqlStore(url_of(place)).record(some("2"))
            os._exit(0 if held else 1)
        os.waitpid(child, 0)
    assert (place / "store.db-wal").stat().st_size > 0

    read_all(place, 2)


def test_who_may_only_read_cannot_write(place: Path) -> None:
    with user(READER, GROUP), pytest.raises(Unavailable, match="readonly"):
        SqlStore(url_of(place)).record(some("2"))


def test_what_was_read_without_locks_while_another_wrote_does_not_count(place: Path) -> None:
    with user(READER, GROUP):
        still = open_to_read(place / "store.db")
    assert isinstance(still, StillConnection)
    still.require_still()
    with user(WRITER, GROUP):
        SqlStore(url_of(place)).record(some("2"))
    with pytest.raises(Unavailable, match="try again"):
        still.require_still()
    still.close()


def test_who_may_not_even_read_is_told_so_in_a_line(place: Path) -> None:
    place.chmod(0o700)
    (place / "store.db").chmod(0o600)
    with user(READER, GROUP), pytest.raises(Unavailable, match="may not be read by this account"):
        migrate.check(url_of(place))


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none/store.db"
    for ask in (migrate.check, migrate.upgrade):
        with pytest.raises(Misconfigured, match=r"folder '.*/none' does not exist"):
            ask(url)


def test_the_files_beside_the_store_have_its_mode(place: Path) -> None:
    """SQLite gives them the store's own: a reader of one may read all."""
    with user(WRITER, GROUP):
        lock = lock_alone(url_of(place))
        assert lock is not None
    modes = {each.stat().st_mode for each in place.iterdir()}
    lock.release()

    assert len(modes) == 1


def _as_restored(store: Path) -> None:
    """One file, as `db backup` writes it."""
    copy = store.with_name("copy.db")
    backup(f"sqlite:///{store}", copy)
    store.unlink()
    copy.rename(store)


def _as_left_by_a_killed_daemon(store: Path) -> None:
    """With a write-ahead log that holds what the file does not."""
    writer = f"""
import os
from evalstopd.store.readers import keep_readable
from evalstopd.store.sql import SqlStore
from tests.store.test_readers import some
kept = keep_readable(__import__("pathlib").Path({str(store)!r}))
SqlStore({f"sqlite:///{store}"!r}).record(some("2"))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", writer], check=True, timeout=60)
    assert log_of(store).stat().st_size > 0


@pytest.mark.parametrize("left", [_as_restored, _as_left_by_a_killed_daemon])
def test_who_may_write_a_store_and_only_looks_leaves_it_as_it_is(tmp_path: Path, left: Callable[[Path], None]) -> None:
    """By every byte of the file and of the log beside it: a check changes nothing."""
    store = tmp_path / "store.db"
    url = f"sqlite:///{store}"
    migrate.upgrade(url)
    SqlStore(url).record(some("1"))
    left(store)

    def marks() -> dict[str, str]:
        files = (each for each in tmp_path.iterdir() if not each.name.endswith("-shm"))
        return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in files}

    before = marks()
    migrate.check_whole(url)
    require_sound(url)
    found = SqlStore(url).find("1")
    assert found
    assert marks() == before
    SqlStore(url).record(some("3"))
    assert marks() != before
    with sqlite3.connect(store) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()
