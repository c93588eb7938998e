"""The process round the tick: what systemd hears, what ends it, and what never does."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalstopd.daemon import every

PROGRAM = """
import threading
from collections import Counter
from evalstopd.daemon import Daemon
from evalstopd.errors import EvalstopError, Fatal
from evalstopd.loop import TickReport

good = TickReport(good=True, counts=Counter(), troubles=())
bad = TickReport(good=False, counts=Counter(), troubles=("nothing works",))

def tick():
    {body}

try:
    Daemon(tick, 0.1, threading.Event()).run()
except EvalstopError as error:
    raise SystemExit(error.exit_code)
"""


class Started:
    """A daemon whose tick a test wrote, and what it told systemd."""

    def __init__(self, body: str, folder: Path) -> None:
        self.address = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.address))
        self.socket.settimeout(60)
        program = PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    ").strip())
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], env=os.environ | {"NOTIFY_SOCKET": str(self.address)},
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def heard(self, for_s: float) -> list[str]:
        """Return what was told within some seconds of the first word."""
        told = [self.socket.recv(4096).decode()]
        end = time.monotonic() + for_s
        self.socket.settimeout(0.1)
        while time.monotonic() < end:
            try:
                told.append(self.socket.recv(4096).decode())
            except TimeoutError:
                continue
        return told

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.socket.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[type[Started]]:
    made: list[Started] = []

    def make(body: str) -> Started:
        made.append(Started(body, tmp_path))
        return made[-1]

    yield make  # type: ignore[misc]
    for each in made:
        each.close()


def test_good_ticks_feed_the_watchdog_and_sigterm_ends_it_well(start) -> None:  # type: ignore[no-untyped-def]
    daemon = start("return good")
    told = daemon.heard(3.0)

    assert "READY=1" in told
    assert any("WATCHDOG=1" in each for each in told)
    assert daemon.end() == 0


def test_ticks_that_all_fail_never_feed_the_watchdog(start) -> None:  # type: ignore[no-untyped-def]
    told = start("return bad").heard(1.0)

    assert any("nothing works" in each for each in told)
    assert not any("WATCHDOG=1" in each for each in told)


def test_a_tick_that_breaks_off_ends_nothing(start) -> None:  # type: ignore[no-untyped-def]
    daemon = start("raise RuntimeError('broken')")
    daemon.heard(0.5)

    assert daemon.process.poll() is None
    assert daemon.end(signal.SIGINT) == 0


def test_a_fatal_fault_ends_the_process_with_its_code(start) -> None:  # type: ignore[no-untyped-def]
    assert start("raise Fatal('the store is of another version')").process.wait(60) == 70


def test_a_tick_in_hand_is_ended_first(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    done = tmp_path / "done"
    begun = tmp_path / "begun"
    daemon = start(
        f"""
        import pathlib, time
        pathlib.Path({str(begun)!r}).touch()
        time.sleep(1)
        pathlib.Path({str(done)!r}).touch()
        return good
        """
    )
    while not begun.exists():
        time.sleep(0.05)

    assert daemon.end() == 0
    assert done.exists()


def test_a_notify_socket_that_nobody_reads_costs_no_tick(start) -> None:  # type: ignore[no-untyped-def]
    daemon = start("return good")
    daemon.heard(0.3)
    daemon.socket.close()
    daemon.address.unlink()
    time.sleep(0.5)

    assert daemon.process.poll() is None
    assert daemon.end() == 0


def test_ticks_drift_apart_and_none_is_late_by_more_than_a_tenth() -> None:
    """Daemons that failed together must not ask a port together when it is back; each still asks within its tick."""

    def moments(ticks: int) -> list[float]:
        trigger, last = every(30.0), datetime(2026, 1, 1, tzinfo=UTC)
        found = []
        for _ in range(ticks):
            now = trigger.get_next_fire_time(last, last)
            assert now is not None
            found.append((now - last).total_seconds())
            last = now
        return found

    one, other = moments(200), moments(200)
    assert all(27.0 <= gap <= 33.0 for gap in (*one, *other))
    assert one != other
    assert len({round(gap, 3) for gap in one}) > 100


def test_a_signal_that_another_thread_was_given_ends_it(start) -> None:  # type: ignore[no-untyped-def]
    """The main thread is not woken by it, as by one that comes just before that thread begins to wait."""
    daemon = start(
        """
        import signal, time
        time.sleep(1)  # by then it waits
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        return good
        """
    )

    assert daemon.process.wait(60) == 0
