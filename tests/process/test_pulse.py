"""When the last good pass was: as a real daemon process notes it, and as `status --daemon` and `check` tell it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalstopd.ports import Pulse
from evalstopd.pulse import alive, pulse_rows, told
from tests.process.test_reload import ROOT, Running
from tests.store.shared_world import opened

PULSE = Pulse("evalstopd@a", 7, 1000.0, 1000.0, leads=True, version="1", digest="d", summary="3 jobs")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    made.wait(made.store.pulses, "the first sign of life")
    yield made
    made.process.kill()
    made.process.wait(60)
    made.store.close()


def status(daemon: Running, *words: str) -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join(str(ROOT / each) for each in (".", "sim", "migrations"))
    return subprocess.run(
        [sys.executable, "-c", "from evalstopd.cli import main; main()", "status", "--daemon", *words],
        env=os.environ | {"EVALSTOPD_CONFIG": str(daemon.config), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_daemon_notes_its_passes_and_status_tells_of_them(daemon: Running) -> None:
    first = daemon.store.pulses()[0]
    daemon.wait(lambda: (daemon.store.pulses()[0].good_s or 0.0) > first.at_s, "a later one")
    done = status(daemon)
    (row,) = json.loads(status(daemon, "--json").stdout)

    assert done.returncode == 0
    assert done.stdout.startswith("ok ")
    assert first.pid == daemon.process.pid == row["pid"]
    assert row["role"] == "leads"
    assert row["good_ago_s"] < 60


def test_passes_that_are_not_good_leave_the_last_good_one_as_it_was(daemon: Running) -> None:
    daemon.wait(lambda: daemon.store.pulses()[0].good_s, "a good pass")
    with opened(daemon.world) as parts:
        parts["cluster"].down = True
    daemon.wait(lambda: daemon.said("nothing decided"), "a bad pass")
    daemon.wait(lambda: "slurmctld" in daemon.store.pulses()[0].summary, "it is noted")
    then = daemon.store.pulses()[0]
    daemon.wait(lambda: daemon.store.pulses()[0].at_s > then.at_s, "another bad pass")

    assert daemon.store.pulses()[0].good_s == then.good_s


def test_a_daemon_is_well_for_three_periods_and_a_minute_after_a_good_pass() -> None:
    def well(at_s: float, tick_s: float) -> bool:
        return alive(pulse_rows([PULSE], at_s, tick_s))

    assert well(1060.0, 1.0)
    assert not well(1060.1, 1.0)
    assert well(1090.0, 30.0)
    assert not well(1090.1, 30.0)


def test_who_only_stands_by_is_not_enough_nor_who_never_had_a_good_pass() -> None:
    assert not alive(pulse_rows([replace(PULSE, leads=False)], 1000.0, 30.0))
    assert not alive(pulse_rows([replace(PULSE, good_s=None)], 1000.0, 30.0))
    assert not alive(())
    assert told(()) == ["no daemon has worked on this store yet"]
    assert "no good pass yet" in told(pulse_rows([replace(PULSE, good_s=None)], 1000.0, 30.0))[0]
