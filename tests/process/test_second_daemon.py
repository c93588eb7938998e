"""A second daemon on the same SQLite file is refused, in one line; the first goes on."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from evalstopd.ports import Pulse
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.store.locks import is_locked

ROOT = Path(__file__).parents[2]


class Commands:
    """The command line over an SQLite store, on a machine without Slurm."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        migrate.upgrade(self.url)
        config = folder / "evalstopd.toml"
        config.write_text(
            f'[store]\nurl = "{self.url}"\n[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n'
            f'[slurm]\npath = "{folder}"\n[daemon]\nkill_switch = "{folder}/STOP"\n'
        )
        paths = os.pathsep.join(str(ROOT / each) for each in (".", "sim", "migrations"))
        self._env = os.environ | {"EVALSTOPD_CONFIG": str(config), "PYTHONPATH": paths}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", "from evalstopd.cli import main; main()", *words]
        return subprocess.Popen(command, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


@pytest.fixture
def first(commands: Commands) -> Iterator["subprocess.Popen[str]"]:
    process = commands.start("run")
    end = time.monotonic() + 120
    try:
        while not is_locked(commands.url):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("words", [("run",), ("tick",)])
def test_a_second_daemon_on_an_sqlite_store_ends_with_one_line(
    commands: Commands, first: "subprocess.Popen[str]", words: tuple[str, ...]
) -> None:
    second = commands.start(*words)
    _, said = second.communicate(timeout=120)

    assert second.returncode == 1
    assert len(said.splitlines()) == 1
    assert "another evalstopd works on" in said
    assert first.poll() is None


def test_what_only_reads_goes_on_beside_the_daemon(commands: Commands, first: "subprocess.Popen[str]") -> None:
    other = commands.start("status")
    _, said = other.communicate(timeout=120)

    assert other.returncode == 0, said
    assert first.poll() is None


def test_a_daemon_that_is_told_to_end_is_shown_as_such_and_one_that_is_killed_is_not(
    commands: Commands, first: "subprocess.Popen[str]"
) -> None:
    store = SqlStore(commands.url)
    noted(store, bool)
    first.terminate()
    first.communicate(timeout=120)
    (pulse,) = store.pulses()
    assert first.returncode == 0
    assert (pulse.pid, pulse.ended, pulse.leads, pulse.holder) == (first.pid, True, False, "")
    again = commands.start("run")
    try:
        noted(store, lambda pulses: pulses[0].pid == again.pid)
    finally:
        again.kill()
        again.communicate()
    (pulse,) = store.pulses()
    assert (pulse.pid, pulse.ended, pulse.leads) == (again.pid, False, True)
    store.close()


def noted(store: SqlStore, holds: Callable[[Sequence[Pulse]], bool]) -> None:
    end = time.monotonic() + 120
    while not holds(store.pulses()):
        assert time.monotonic() < end
        time.sleep(0.1)
