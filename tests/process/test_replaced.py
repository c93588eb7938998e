"""A store's file that is replaced under its daemon: no pass is made on a file that the daemon has not locked."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.cli import app
from evalstopd.lead.seat import OwnSeat
from evalstopd.store import migrate
from evalstopd.store.backup import backup
from evalstopd.store.lock import lock_alone
from evalstopd.store.sql import SqlStore
from tests.process.test_reload import Running, at_work

SAID = "the store's file was replaced: restart the daemon"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    yield from at_work(Running(tmp_path))


def test_a_daemon_makes_no_pass_and_notes_nothing_on_a_file_that_was_put_in_the_place_of_its_own(
    daemon: Running, tmp_path: Path
) -> None:
    """What lies there may be another daemon's: this one says so once and writes nothing, at its end neither."""
    live, away = tmp_path / "store.db", tmp_path / "away"
    away.mkdir()
    backup(daemon.url, tmp_path / "backup.db")
    for file in tmp_path.glob("store.db*"):
        file.rename(away / file.name)
    (tmp_path / "backup.db").rename(live)
    restored = SqlStore(daemon.url)
    daemon.wait(lambda: daemon.said(SAID), "that it says so")
    before = restored.head(), restored.pulses()
    passes = daemon.said("jobs, ")
    daemon.configure(tick_s=0.2)
    daemon.hang_up()
    daemon.wait(lambda: daemon.said("settings reloaded"), "that it lives")
    daemon.process.terminate()
    daemon.process.wait(60)

    assert daemon.said(SAID) == 1
    assert daemon.said("jobs, ") == passes
    assert (restored.head(), restored.pulses()) == before
    restored.close()


def test_another_daemon_works_on_the_file_that_replaced_the_first_ones_and_the_first_goes_on_once_its_own_is_back(
    tmp_path: Path,
) -> None:
    url, live = f"sqlite:///{tmp_path}/store.db", tmp_path / "store.db"
    migrate.upgrade(url)
    first = lock_alone(url)
    assert first is not None
    seat = OwnSeat(first.release, lambda: first.replaced)
    assert (seat.ours, seat.known, seat.lost) == (True, True, False)
    live.rename(tmp_path / "away.db")
    assert seat.ours, "a file that is gone is told of by whoever opens it"
    shutil.copy(tmp_path / "away.db", live)
    second = lock_alone(url)

    assert second is not None
    assert (seat.ours, seat.known, seat.lost, second.replaced) == (False, False, True, False)
    assert SAID in seat.said
    (tmp_path / "away.db").rename(live)
    assert (seat.ours, second.replaced) == (True, True)
    first.release()
    second.release()


def test_what_is_said_of_a_backup_names_its_mode_and_how_it_is_put_back(tmp_path: Path) -> None:
    migrate.upgrade(f"sqlite:///{tmp_path}/store.db")
    config = tmp_path / "evalstopd.toml"
    config.write_text(f'[store]\nurl = "sqlite:///{tmp_path}/store.db"\n')
    done = CliRunner().invoke(app, ["db", "backup", str(tmp_path / "copy.db"), "--config", str(config)])

    assert done.exit_code == 0, done.output
    assert [words for words in ("0600", "stop the daemon", "-wal", "owner", "0640") if words not in done.output] == []
