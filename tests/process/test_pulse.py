"""When the last good pass was: as a real daemon process notes it, and as `status --daemon` and `check` tell it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalstopd.adapters.system import is_running
from evalstopd.ports import Lease, Pulse
from evalstopd.pulse import alive, host_of, missed, pulse_rows, told
from evalstopd.slot import take_slot
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


def test_a_daemon_that_was_killed_is_said_to_be_gone_at_once(daemon: Running) -> None:
    """Before it is reaped, too; the patience of a minute is for those of other hosts."""
    daemon.wait(lambda: daemon.store.pulses()[0].good_s, "a good pass")
    daemon.process.kill()
    os.waitid(os.P_PID, daemon.process.pid, os.WEXITED | os.WNOWAIT)
    unreaped = status(daemon)
    daemon.process.wait(60)
    done = status(daemon)

    assert [each.returncode for each in (unreaped, done)] == [1, 1]
    for each in (unreaped, done):
        assert each.stdout.startswith("BAD ")
        assert f"(pid {daemon.process.pid}, " in each.stdout
        assert "is gone: its process ended without being told to; last good pass " in each.stdout


def test_a_process_that_began_after_the_last_sign_of_life_is_another_with_the_same_id() -> None:
    ours = os.getpid()
    assert is_running(ours, time.time())
    assert not is_running(ours, time.time() - 10 * 86400)
    assert is_running(1, time.time()), "another account's"
    with subprocess.Popen(["true"]) as over:
        over.wait(60)
    assert not is_running(over.pid, time.time())


def test_who_is_gone_neither_leads_nor_is_well_and_who_was_told_to_end_is_not_gone() -> None:
    other = replace(PULSE, name="evalstopd@b#2", pid=8)
    rows = pulse_rows([PULSE, other], 1001.0, 30.0, gone=lambda pulse: host_of(pulse) == "b")
    assert [(row.name, row.role, row.good) for row in rows] == [
        ("evalstopd@a", "leads", True), ("evalstopd@b#2", "is gone", False),
    ]  # fmt: skip
    assert missed(rows)
    assert not alive(rows[1:])
    assert pulse_rows([replace(PULSE, ended=True)], 1001.0, 30.0, gone=lambda _: True)[0].role == "has ended"


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


def test_a_lease_says_who_leads_for_who_was_killed_says_so_for_ever() -> None:
    was = replace(PULSE, holder="a:7:x")
    now = replace(PULSE, name="evalstopd@b", holder="b:8:y", leads=False)
    rows = pulse_rows([was, now], 1000.0, 30.0, {"evalstopd": Lease("b:8:y", 2, 10.0, "c")})
    assert [(row.name, row.role) for row in rows] == [("evalstopd@b", "leads"), ("evalstopd@a", "led")]
    assert alive(rows)
    over = pulse_rows([was, now], 1000.0, 30.0, {"evalstopd": Lease("a:7:x", 1, -0.1)})
    assert [(row.name, row.role) for row in over] == [("evalstopd@a", "led"), ("evalstopd@b", "stands by")]
    assert not alive(over)
    other = replace(was, name="other@a", holder="a:9:z")
    both = pulse_rows(
        [other, now], 1000.0, 30.0, {"other": Lease("a:9:z", 1, 5.0, "c"), "evalstopd": Lease("b:8:y", 2, 5.0, "d")}
    )
    assert [row.role for row in both] == ["leads", "leads"], "each lease has a leader of its own"


def test_who_has_a_lease_under_which_it_may_lead_no_cluster_is_not_said_to_lead() -> None:
    refused = replace(PULSE, holder="a:7:x", good_s=None, summary="nothing is done: under the lease 'one' 'b' leads")
    rows = pulse_rows([refused], 1000.0, 30.0, {"evalstopd": Lease("a:7:x", 1, 10.0)})

    assert told(rows)[0].startswith("BAD  evalstopd@a (pid 7, 1) leads no cluster: no good pass yet")
    assert not alive(rows)


def test_who_stands_by_and_is_late_is_missed_and_who_was_told_to_end_is_not() -> None:
    late = replace(PULSE, name="evalstopd@b", leads=False, at_s=0.0, good_s=0.0)
    assert missed(pulse_rows([PULSE, late], 1000.0, 30.0))
    rows = pulse_rows([PULSE, replace(late, ended=True)], 1000.0, 30.0)
    assert not missed(rows)
    assert told(rows)[1].startswith("off  evalstopd@b (pid 7, 1) was told to end 1000 s ago")


def test_daemons_that_would_decide_differently_are_told_of() -> None:
    other = replace(PULSE, name="evalstopd@b", leads=False, version="2", digest="e")
    assert told(pulse_rows([PULSE, other], 1000.0, 30.0))[2:] == [
        "they differ in version: evalstopd@a 1, evalstopd@b 2",
        "they differ in settings: evalstopd@a d, evalstopd@b e",
    ]
    assert len(told(pulse_rows([PULSE, replace(other, version="1", digest="d")], 1000.0, 30.0))) == 2


def test_each_daemon_of_a_host_has_a_slot_of_its_own_and_has_it_again_after_its_end() -> None:
    first, second, elsewhere = (take_slot(database, "pulse@h") for database in ("d", "d", "other"))
    assert [each.name for each in (first, second, elsewhere)] == ["pulse@h", "pulse@h#2", "pulse@h"]
    first.release()
    again, third = take_slot("d", "pulse@h"), take_slot("d", "pulse@h")
    assert [again.name, third.name] == ["pulse@h", "pulse@h#3"]
    for each in (second, elsewhere, again, third):
        each.release()


def test_who_finds_all_slots_occupied_is_named_by_his_process() -> None:
    taken = [take_slot("full", "pulse@h") for _ in range(9)]
    assert take_slot("full", "pulse@h").name == f"pulse@h#pid{os.getpid()}"
    for each in taken:
        each.release()
