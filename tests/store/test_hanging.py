"""A store that hangs: PostgreSQL's process is stopped, SQLite's file is locked; calls end, and go on afterwards."""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from evalstopd.errors import Unavailable
from evalstopd.ports import Changes
from evalstopd.store import migrate
from evalstopd.store.limited import LimitedConnection
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER

SLACK_S = 15.0


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Keep processes from doing anything, without ending them."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def backends(store: SqlStore) -> list[int]:
    """Return the server's processes that serve this store's open connections."""
    with store._engines.read.connect() as connection:
        found = connection.execute(text("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"))
        return [int(pid) for pid in found.scalars()]


@pytest.mark.timed
def test_a_stopped_backend_is_given_up_and_another_one_serves(
    empty_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection in the pool hangs; a new one is made within the same call."""
    migrate.upgrade(empty_postgresql_url)
    monkeypatch.setattr(LimitedConnection, "limit_s", 1.0)
    store = SqlStore(empty_postgresql_url)
    with stopped(backends(store)):
        begun = time.monotonic()
        store.record(Changes(remarks=(make.remark("during"),)))
        took_s = time.monotonic() - begun

    assert 1.0 <= took_s < SLACK_S
    assert store.remarks_of(["during"]) == (make.remark("during"),)
    store.close()


@pytest.mark.timed
def test_a_stopped_server_ends_the_call_in_time_and_the_next_is_served(
    empty_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.upgrade(empty_postgresql_url)
    monkeypatch.setattr(LimitedConnection, "limit_s", 1.0)
    store = SqlStore(empty_postgresql_url)
    pids = backends(store)
    server = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    with stopped([*pids, server]):
        begun = time.monotonic()
        with pytest.raises(Unavailable):
            store.record(Changes(remarks=(make.remark("during"),)))
        took_s = time.monotonic() - begun
    store.record(Changes(remarks=(make.remark("after"),)))

    assert took_s < SLACK_S
    assert store.remarks_of(["during", "after"]) == (make.remark("after"),)
    store.close()


def test_an_answer_that_takes_its_time_is_waited_for(
    empty_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.upgrade(empty_postgresql_url)
    monkeypatch.setattr(LimitedConnection, "limit_s", 30.0)
    store = SqlStore(empty_postgresql_url)
    store.book(CLUSTER)
    pids = backends(store)
    let_go = threading.Timer(1.5, lambda: [os.kill(pid, signal.SIGCONT) for pid in pids])
    with stopped(pids):
        let_go.start()
        store.record(Changes(remarks=(make.remark("late"),)))
    let_go.join()

    assert store.remarks_of(["late"]) == (make.remark("late"),)
    store.close()


@pytest.mark.timed
def test_a_locked_file_ends_the_call_in_time_and_the_next_is_served(tmp_path: Path) -> None:
    """Another process holds the writers' lock: nothing is written, and nothing waits for it without end."""
    file = tmp_path / "store.db"
    migrate.upgrade(f"sqlite:///{file}")
    store = SqlStore(f"sqlite:///{file}")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="locked"):
        store.record(Changes(remarks=(make.remark("during"),)))
    took_s = time.monotonic() - begun
    assert store.remarks_of(["during"]) == (), "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    store.record(Changes(remarks=(make.remark("after"),)))

    assert took_s < SLACK_S
    assert store.remarks_of(["during", "after"]) == (make.remark("after"),)
    store.close()
