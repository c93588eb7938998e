"""A copy of the store, taken while others write; and a damaged store that is found out."""

import shlex
import sqlite3
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from evalstopd.core.chain import Head
from evalstopd.errors import EvalstopError, Fatal, Rejected, WrongUsage
from evalstopd.ports import Changes
from evalstopd.report.audit.verify import verify
from evalstopd.store import migrate
from evalstopd.store.backup import backup, require_sound
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER, key, point


def made(folder: Path) -> tuple[str, SqlStore]:
    url = f"sqlite:///{folder}/store.db"
    migrate.upgrade(url)
    return url, SqlStore(url)


def whole(number: int) -> Changes:
    """All of one transaction belongs together: a watch, and its points."""
    owner = key(str(number))
    return Changes(watches=(make.watch(owner),), points=tuple((owner, point(step)) for step in range(20)))


def test_a_copy_has_all_and_its_chain_verifies(tmp_path: Path) -> None:
    url, store = made(tmp_path)
    planned = make.intent()
    store.record(Changes(watches=(make.watch(),), intents=(planned,), events=(make.event(planned),)))
    size = backup(url, tmp_path / "copy.db")
    copy = SqlStore(f"sqlite:///{tmp_path}/copy.db")

    assert size == (tmp_path / "copy.db").stat().st_size > 0
    assert copy.book(CLUSTER) == store.book(CLUSTER)
    assert copy.head() == store.head() != Head()
    assert require_sound(f"sqlite:///{tmp_path}/copy.db").startswith("every page")
    assert verify(copy).good


def test_a_copy_is_one_file_that_only_its_owner_may_read_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    url, store = made(tmp_path)
    store.record(whole(1))
    target = tmp_path / "copies" / "copy.db"
    target.parent.mkdir()
    backup(url, target)

    assert list(target.parent.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_copy_taken_while_another_writes_is_of_one_moment(tmp_path: Path) -> None:
    """No transaction is in it by half."""
    url, store = made(tmp_path)
    over = threading.Event()

    def work() -> None:
        number = 0
        while not over.is_set():
            store.record(whole(number))
            number += 1

    writer = threading.Thread(target=work)
    writer.start()
    try:
        for number in range(5):
            backup(url, tmp_path / f"copy{number}.db")
    finally:
        over.set()
        writer.join()
    for number in range(5):
        copy = SqlStore(f"sqlite:///{tmp_path}/copy{number}.db")
        keys = [watch.key for watch in copy.recent(100_000)]
        assert {len(points) for points in copy.points(keys).values()} <= {20}


@pytest.mark.parametrize("kind", ["file", "link to nowhere", "the store itself"])
def test_nothing_that_is_there_is_replaced(tmp_path: Path, kind: str) -> None:
    url, store = made(tmp_path)
    store.record(whole(1))
    target = tmp_path / ("store.db" if kind == "the store itself" else "copy.db")
    if kind == "file":
        target.write_text("precious")
    elif kind == "link to nowhere":
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(WrongUsage, match="there already"):
        backup(url, target)

    assert store.find("1")
    assert kind != "file" or target.read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    url, _ = made(tmp_path)
    with pytest.raises(WrongUsage, match=r"there is no folder '.*/none' to write the backup to: make it"):
        backup(url, tmp_path / "none" / "copy.db")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", r"needs the name of a new file, and '\.' is a folder"),
        ("/", "is a folder"),
        ("a\0b", "cannot be written to 'a"),
        ("x" * 300, "cannot be written to 'x"),
    ],
)
def test_a_name_that_no_new_file_can_have_is_refused_with_what_to_do(tmp_path: Path, name: str, words: str) -> None:
    url, _ = made(tmp_path)
    with pytest.raises(WrongUsage, match=words):
        backup(url, Path(name))
    assert not list(Path.cwd().glob(".*.part-*"))


def test_for_postgresql_the_command_that_is_named_copies_it_and_shows_no_password(
    empty_postgresql_url: str, tmp_path: Path
) -> None:
    """The command is run as it is printed."""
    migrate.upgrade(empty_postgresql_url)
    with_password = empty_postgresql_url.replace("tests@", "tests:s3cret@")
    url = f"{with_password}&options=-c%20work_mem%3D4MB&sslpassword=s3cret&application_name=it%27s+me"
    with pytest.raises(Rejected, match="pg_dump --format=custom --file=FILE ") as caught:
        backup(url, tmp_path / "copy")
    command = shlex.split(
        str(caught.value).partition(": ")[2].partition(" (")[0].replace("FILE", str(tmp_path / "copy"))
    )
    subprocess.run(command, check=True, timeout=60)

    assert "s3cret" not in str(caught.value)
    assert (tmp_path / "copy").read_bytes().startswith(b"PGDMP")
    assert "pg_amcheck" in require_sound(empty_postgresql_url)


def test_a_damaged_file_is_found_out(tmp_path: Path) -> None:
    """A page of zeros in the midst."""
    url, store = made(tmp_path)
    for number in range(60):
        store.record(whole(number))
    with sqlite3.connect(tmp_path / "store.db") as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'points'").fetchone()
        (size,) = raw.execute("PRAGMA page_size").fetchone()
    raw.close()
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))
    with pytest.raises(EvalstopError, match=r"damaged|malformed"):
        require_sound(url)


def test_a_row_that_points_nowhere_is_found_out(tmp_path: Path) -> None:
    url, store = made(tmp_path)
    store.record(whole(1))
    with sqlite3.connect(tmp_path / "store.db") as raw:
        raw.execute("DELETE FROM jobs")
    raw.close()
    with pytest.raises(Fatal, match="points nowhere"):
        require_sound(url)
