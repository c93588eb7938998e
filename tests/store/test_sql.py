"""What only a store on a disk can get wrong: kills, locks, plans, triggers, failures."""

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from evalstopd.core.caps import BreakerTurn, Turn
from evalstopd.core.chain import Appended
from evalstopd.core.intent import State
from evalstopd.errors import Rejected, Unavailable
from evalstopd.ports import Book, Changes
from evalstopd.report.audit.verify import verify
from evalstopd.store import migrate, reading
from evalstopd.store.engine import connect, parse
from evalstopd.store.sql import SqlStore
from evalstopd.store.writing import append
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER, HOSTILE, key, point, watch

# Records one intent with all that belongs to it, and stops before the statement that its second argument names.
_CHILD = """
import sys
from sqlalchemy import Engine, event
from evalstopd.ports import Changes
from evalstopd.store.sql import SqlStore
from evalstopd.store.writing import append
from tests.contracts import store_builders as make

@event.listens_for(Engine, "before_cursor_execute")
def pause(connection, cursor, statement, parameters, context, executemany):
    if statement.startswith(f"INSERT INTO {sys.argv[2]} "):
        print("reached", flush=True)
        sys.stdin.read()

store = SqlStore(sys.argv[1])
planned = make.intent()
store.record(Changes((make.watch(),), ((make.key(), make.point()),), (make.pin(),), (planned,), (make.event(planned),),
                     (make.would_be(),), (make.binding(),), (make.remark("site"),)))
print("recorded", flush=True)
sys.stdin.read()
"""


def _kill_when(url: str, table: str) -> str:
    """Run the child up to the writing of a table, kill it there, and return what it said last."""
    command = [sys.executable, "-c", _CHILD, url, table]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = child.stdout.readline().strip()
        os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    return said


@pytest.mark.parametrize("table", ["watches", "points", "intents", "intent_events", "remarks"])
def test_a_process_killed_in_mid_transaction_leaves_nothing(url: str, table: str) -> None:
    """SIGKILL between two statements of one record: none of it is there, and the store is free at once."""
    assert _kill_when(url, table) == "reached"

    store = SqlStore(url)
    assert store.book(CLUSTER) == Book()
    assert store.points([key()]) == {key(): ()}
    assert store.intents_of([key()]) == store.remarks_of(["site"]) == ()
    store.record(Changes(intents=(make.intent(),), events=(make.event(make.intent()),)))
    store.close()


def test_a_process_killed_after_a_record_leaves_all_of_it(url: str) -> None:
    """What `record` returned for is kept, whatever happens next."""
    assert _kill_when(url, "nothing") == "recorded"

    store, planned = SqlStore(url), make.intent()
    book = store.book(CLUSTER)
    assert (book.watches, book.pins, book.intents) == ((watch(),), (make.pin(),), (planned,))
    assert (book.booked, book.said) == ({key()}, {("site", "no-run")})
    assert store.holders(["run-1"])["run-1"].key == key()
    assert store.points([key()]) == {key(): (point(),)}
    assert store.events_of([planned.id]) == (make.event(planned),)
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE intent_events SET text = 'rewritten'",
        "UPDATE intent_events SET seq = 5",
        "DELETE FROM intent_events",
        "DELETE FROM intents",
        "UPDATE would_be_stops SET at_s = 1",
        "DELETE FROM would_be_stops",
        "UPDATE remarks SET text = 'rewritten'",
        "DELETE FROM remarks",
        "UPDATE links SET hash = 'rewritten'",
        "DELETE FROM links",
        "UPDATE credits SET gpu_hours = 1000",
        "DELETE FROM credits",
        "UPDATE bindings SET proof = 'rewritten'",
        "DELETE FROM bindings",
        "UPDATE breakers SET until_s = 0",
        "DELETE FROM breakers",
    ],
)
def test_what_the_chain_seals_can_only_be_appended_to(url: str, statement: str) -> None:
    """Triggers and the foreign key hold for anyone who comes with SQL."""
    _refuses(url, statement)


@pytest.mark.parametrize(
    "table", ["intent_events", "credits", "would_be_stops", "remarks", "links", "bindings", "breakers"]
)
def test_postgresql_refuses_to_empty_the_history(empty_postgresql_url: str, table: str) -> None:
    """TRUNCATE goes past triggers on rows."""
    migrate.upgrade(empty_postgresql_url)
    _refuses(empty_postgresql_url, f"TRUNCATE {table}")


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT OR REPLACE INTO intent_events VALUES ('{make.intent().id}', 0, 1.0, 'planned', 'rewritten')",
        "INSERT OR REPLACE INTO would_be_stops SELECT job, restarts, submitted_s, 1.0, '{}', 0 FROM would_be_stops",
        "INSERT OR REPLACE INTO remarks SELECT id, 'site', 'rewritten', '', 1.0 FROM remarks",
        "INSERT OR REPLACE INTO credits SELECT intent_id, job, user, account, 1000.0, at_s, 'again' FROM credits",
        "INSERT OR REPLACE INTO links SELECT seq, kind, ref, digest, 'rewritten' FROM links",
    ],
)
def test_sqlite_refuses_to_replace_what_the_chain_seals(tmp_path: Path, statement: str) -> None:
    """INSERT OR REPLACE deletes without a trigger on DELETE."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    _refuses(url, statement)


def _refuses(url: str, statement: str) -> None:
    store, planned, engines = SqlStore(url), make.intent(), connect(parse(url))
    booked, said = make.would_be(), make.remark("site")
    store.record(Changes(intents=(planned,), events=(make.event(planned),), would_be=(booked,), remarks=(said,)))
    turn = BreakerTurn(CLUSTER, "site", Turn.TRIPPED, 1.0, 2.0, "too many")
    store.record(Changes(credits=(make.credit(planned),), bindings=(make.binding(),), breakers=(turn,)))
    with pytest.raises(DBAPIError, match=r"append-only|(?i:foreign key)"), engines.write.begin() as connection:
        connection.execute(text(statement))
    engines.dispose()

    assert store.events_of([planned.id]) == (make.event(planned),)
    assert (store.would_be_of([key()]), store.remarks_of(["site"])) == ((booked,), (said,))
    assert store.credits_of([planned.key]) == (make.credit(planned),)
    assert verify(store).good
    store.close()


@pytest.mark.parametrize(
    ("statement", "what", "row"),
    [
        ("UPDATE remarks SET text = 'rewritten'", "changed", "remark 5"),
        ("DELETE FROM would_be_stops", "removed", "would-be stop"),
        ("UPDATE credits SET gpu_hours = 1000", "changed", "the credit for stop"),
        ("UPDATE intents SET state = 'vetoed'", "changed", "the state of stop"),
        ("UPDATE intents SET evidence = 'nonsense'", "changed", "the evidence of stop"),
        ("UPDATE points SET value = '0.9'", "changed", "the points of job"),
        ("UPDATE points SET stderr = '0.9' WHERE step = 1", "changed", "the points of job"),
        ("UPDATE points SET batch = 7 WHERE step = 1", "changed", "the points of job"),
        ("UPDATE points SET dataset = 'other@1' WHERE step = 1", "changed", "the points of job"),
        ("DELETE FROM points WHERE step = 1", "changed", "the points of job"),
        ("DELETE FROM points", "removed", "the points of job"),
        ("UPDATE pins SET manifest = 'x'", "changed", "the pin of step 20 of job"),
        ("DELETE FROM pins", "removed", "the pin of step 20 of job"),
        ("UPDATE bindings SET proof = 'mac'", "changed", "binding"),
        ("UPDATE breakers SET until_s = 0", "changed", "turn"),
        (
            "INSERT INTO points SELECT job, 8, run_id, 9, 9, value, metric, dataset, 1, stderr, 9 FROM points LIMIT 1",
            "inserted",
            "the points of job",
        ),
        ("INSERT INTO remarks (subject, code, text, at_s) VALUES ('site', 'a', 'b', 1)", "inserted", "remark"),
    ],
)
def test_tampering_is_named_on_either_database(url: str, statement: str, what: str, row: str) -> None:
    """Whoever may drop the triggers may change the rows: the chain tells which."""
    store, planned, engines = SqlStore(url), make.intent(), connect(parse(url))
    stops, said = (make.would_be(),), (make.remark("site"),)
    store.record(Changes(intents=(planned,), events=(make.event(planned),), would_be=stops, remarks=said))
    store.record(Changes(credits=(make.credit(planned),)))
    turn = BreakerTurn(CLUSTER, "site", Turn.TRIPPED, 1.0, 2.0, "too many")
    points = tuple((key(), point(step)) for step in (1, 2))
    store.record(Changes(points=points, pins=(make.pin(),), bindings=(make.binding(),), breakers=(turn,)))
    with engines.write.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("DROP FUNCTION refuse_to_change() CASCADE"))
        else:
            for name in connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars():
                connection.execute(text(f"DROP TRIGGER {name}"))
        connection.execute(text(statement))
    engines.dispose()
    first = verify(store).first

    assert first is not None
    assert (first.what, first.row[: len(row)]) == (what, row)
    store.close()


def test_points_of_a_decided_job_are_never_said_to_be_forgotten(tmp_path: Path) -> None:
    """Whoever removes what a stop stands on cannot call it retention: of decided jobs nothing is forgotten."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    store, engines = SqlStore(url), connect(parse(url))
    store.record(Changes(points=((key(), point()),), intents=(make.intent(),)))
    with engines.write.begin() as connection:
        connection.execute(text("DELETE FROM points"))
        append(connection, Appended(forgotten=[key().text]))
    engines.dispose()
    first = verify(store).first

    assert first is not None
    assert (first.what, first.row) == ("removed", f"the points of job {key().text} in batch 0")
    store.close()


def test_points_of_some_jobs_are_found_by_the_key_of_the_table(url: str) -> None:
    """Neither database reads the points of every job to find those of two."""
    store, engines = SqlStore(url), connect(parse(url))
    owners = [key(str(n)) for n in range(300)]
    store.record(Changes(points=tuple((owner, point(step)) for owner in owners for step in range(20))))
    query = reading.points_query([owners[3].text, owners[4].text])
    with engines.write.begin() as connection:
        explain = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
        connection.execute(text("ANALYZE"))
        asked = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = " ".join(str(row) for row in connection.exec_driver_sql(explain + str(asked)))
    engines.dispose()

    assert "PRIMARY KEY (job=?)" in plan or "points_pkey" in plan
    assert "SCAN" not in plan
    assert "Seq Scan" not in plan
    store.close()


def test_writers_come_one_after_another(url: str) -> None:
    """What a writing has read of an intent's state stays so until it has written."""
    store, engines = SqlStore(url), connect(parse(url))
    with ThreadPoolExecutor(1) as pool:
        with engines.write.begin():
            waiting = pool.submit(store.record, Changes(watches=(watch(),)))
            with pytest.raises(TimeoutError):
                waiting.result(0.5)
        waiting.result(5)
    engines.dispose()

    assert store.find("7") == (watch(),)
    store.close()


def test_a_store_locked_for_too_long_is_unavailable_and_then_works_again(tmp_path: Path) -> None:
    """Another writer that hangs costs a pass; readers go on."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    store, other = SqlStore(url), sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        store.record(Changes(watches=(watch(),)))
    assert store.book(CLUSTER) == Book()
    other.close()
    store.record(Changes(watches=(watch(),)))

    assert store.find("7") == (watch(),)


def test_a_file_moved_away_is_noticed_at_once(tmp_path: Path) -> None:
    """Nothing is written into a file that has lost its name, and no new one is made."""
    url, file = f"sqlite:///{tmp_path}/store.db", tmp_path / "store.db"
    migrate.upgrade(url)
    store = SqlStore(url)
    store.record(Changes(watches=(watch(),)))
    file.rename(tmp_path / "moved.db")
    for act in (lambda: store.book(CLUSTER), lambda: store.record(Changes(watches=(watch(),)))):
        with pytest.raises(Unavailable):
            act()

    assert not file.exists()


@pytest.mark.parametrize("step", [2**63, -(2**63) - 1, 10**30])
def test_a_number_beyond_64_bits_is_refused_by_name_not_taken_for_an_outage(url: str, step: int) -> None:
    """A tracker's nonsense must not look like a database that is down."""
    store = SqlStore(url)
    with pytest.raises(Rejected, match="cannot hold"):
        store.record(Changes(watches=(watch(),), points=((key(), point(step, timestamp_ms=0)),)))

    assert store.find("7") == ()
    store.close()


def test_messages_of_failures_are_one_printable_line_without_users_text(url: str) -> None:
    """A driver may quote what it was given."""
    store = SqlStore(url)
    bad = watch(name=HOSTILE, evals=2**70)
    with pytest.raises(Rejected) as caught:
        store.record(Changes(watches=(bad,)))

    assert str(caught.value).isprintable()
    assert str(caught.value).isascii()
    assert "DROP TABLE" not in str(caught.value)
    store.close()


def test_a_connection_lost_between_two_calls_is_made_anew(empty_postgresql_url: str) -> None:
    """A server that was restarted is found again without a lost pass."""
    migrate.upgrade(empty_postgresql_url)
    store, engines = SqlStore(empty_postgresql_url), connect(parse(empty_postgresql_url))
    store.book(CLUSTER)
    with engines.write.begin() as connection:
        own = text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        assert connection.execute(own).all()
    engines.dispose()
    store.record(Changes(watches=(watch(),)))

    assert store.find("7") == (watch(),)
    store.close()


def test_a_stop_given_up_in_one_store_object_is_seen_by_another(url: str) -> None:
    """Two daemons share nothing but the database."""
    one, two = SqlStore(url), SqlStore(url)
    one.record(Changes(intents=(make.intent(),)))
    two.record(Changes(intents=(make.intent(state=State.VETOED),)))
    with pytest.raises(Rejected, match="another daemon"):
        one.record(Changes(intents=(make.intent(state=State.WARNED),)))
    one.close()
    two.close()
