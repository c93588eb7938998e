"""The leases' contract over memory, a file of SQLite and a database of PostgreSQL; a lock for SQLite."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from evalstopd.errors import Unavailable
from evalstopd.lead.lead import LedStore
from evalstopd.ports import Changes
from evalstopd.store import migrate
from evalstopd.store.engine import connect, parse
from evalstopd.store.lock import lock_alone
from evalstopd.store.memory import MemoryStore
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make
from tests.contracts.lease_contract import LONG_S, LeaseContract, until
from tests.store.locks import is_locked

_LOCKER = """
import sys
from evalstopd.store.lock import lock_alone
lock_alone(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


class TestMemoryLeases(LeaseContract):
    @pytest.fixture
    def store(self) -> LedStore:
        return MemoryStore()


class TestSqlLeases(LeaseContract):
    @pytest.fixture
    def store(self, url: str) -> Iterator[LedStore]:
        made = SqlStore(url)
        yield made
        made.close()


def test_one_process_locks_an_sqlite_store_until_it_ends_and_its_own_work_goes_on(tmp_path: Path) -> None:
    """A lock ends with its process, however that ends; SQLite's own locks know nothing of it."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    command = [sys.executable, "-c", _LOCKER, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        store = SqlStore(url)
        store.record(Changes(watches=(make.watch(),)))
        with pytest.raises(Unavailable, match="another evalstopd works on"):
            lock_alone(url)
        assert is_locked(url)
        other.kill()

    until(lambda: not is_locked(url))
    assert store.find("7") == (make.watch(),)


def test_a_store_that_is_not_there_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file"):
        lock_alone(f"sqlite:///{tmp_path}/store.db")


def test_who_stops_in_the_midst_of_a_writing_does_not_keep_the_lease_from_others(empty_postgresql_url: str) -> None:
    """The server ends a transaction that stands still: the writers' lock is free again."""
    migrate.upgrade(empty_postgresql_url)
    store, engines = SqlStore(empty_postgresql_url), connect(parse(empty_postgresql_url))
    stopped = engines.write.connect()
    stopped.execute(text("SELECT 1"))

    def taken() -> bool:
        try:
            return store.take("pair", "b", LONG_S).holder == "b"
        except Unavailable:
            return False

    assert not taken()
    until(taken)
    stopped.invalidate()
    stopped.close()
    engines.dispose()
    store.close()


def test_what_was_released_can_be_locked_again_by_the_same_process(tmp_path: Path) -> None:
    """As two commands do that one program calls, one after the other."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    for _ in range(2):
        lock = lock_alone(url)
        assert lock is not None
        with pytest.raises(Unavailable):
            lock_alone(url)
        lock.release()
