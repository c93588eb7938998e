"""The process: APScheduler round the tick, signals, sd_notify. Nothing of the domain."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.job import Job
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from evalstopd.errors import EvalstopError, Fatal, Misconfigured
from evalstopd.loop import TickReport
from evalstopd.repeats import PassLog

_HANGUP = bytes([signal.SIGHUP])
JITTER = 0.1
"""The share of its period by which a tick may come sooner or later."""
_log = logging.getLogger("evalstopd")


def sd_notify(state: str, environment: Mapping[str, str] = os.environ) -> None:
    """Tell systemd a state such as `READY=1`; without NOTIFY_SOCKET, or a listener at it, nothing happens."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.connect("\0" + address[1:] if address.startswith("@") else address)
        sock.sendall(state.encode())


def every(tick_s: float) -> IntervalTrigger:
    """Return when ticks are made: by chance a little sooner or later, so that no two daemons keep asking together."""
    return IntervalTrigger(seconds=tick_s, timezone="UTC", jitter=JITTER * tick_s)


@dataclass(slots=True)
class Daemon:
    """Runs a tick every `tick_s` seconds until SIGTERM or SIGINT; the step in hand is ended first.

    The watchdog is fed by good ticks only: a daemon whose ticks all fail must not look alive. `beat` is called every
    `beat_s` seconds (0: never) beside the ticks, however long one takes; where it says so, a tick is made at once.
    SIGHUP calls `reload`, never while a tick is made; it returns the seconds from tick to tick. `follow` is told of
    each tick once it has been logged.
    """

    tick: Callable[[], TickReport]
    tick_s: float
    stopping: threading.Event
    beat: Callable[[], bool] = lambda: False
    beat_s: float = 0.0
    reload: Callable[[], float] | None = None
    follow: Callable[[TickReport], None] = lambda _: None
    _passes: PassLog = field(default_factory=PassLog)
    _wake: tuple[int, int] = field(default_factory=os.pipe)
    _fatal: list[EvalstopError] = field(default_factory=list)

    def run(self) -> None:
        """Run until told to stop. Raises what ended the loop if that was Fatal or Misconfigured."""
        # By the wakeup descriptor alone: a handler of Python's waits until the main thread runs, and one whose signal
        # came just before that thread began to read would wait for ever.
        os.set_blocking(self._wake[1], False)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _heard)
        scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone="UTC")
        scheduler.add_job(self._once, misfire_grace_time=None)
        regular = scheduler.add_job(
            self._once, every(self.tick_s), coalesce=True, max_instances=1, misfire_grace_time=None
        )
        if self.beat_s:
            self.beat()
            scheduler.add_executor(ThreadPoolExecutor(1), "beats")
            scheduler.add_job(
                self._beat, "interval", [scheduler], executor="beats", seconds=self.beat_s, misfire_grace_time=None
            )
        scheduler.start()
        sd_notify("READY=1")
        while os.read(self._wake[0], 1) == _HANGUP:
            scheduler.add_job(self._reload, args=[regular], misfire_grace_time=None)
        self.stopping.set()
        sd_notify("STOPPING=1")
        scheduler.shutdown(wait=True)
        if self._fatal:
            raise self._fatal[0]

    def _once(self) -> None:
        if self.stopping.is_set():
            return
        try:
            report = self.tick()
        except (Fatal, Misconfigured) as error:
            self._fatal.append(error)
            os.write(self._wake[1], b"f")
            return
        except Exception:  # noqa: BLE001  a broken tick must not end the daemon; the watchdog sees that none is good
            _log.exception("a tick broke off")
            return
        self._passes.tell(report, time.monotonic())
        sd_notify(f"STATUS={report.summary[:200]}" + ("\nWATCHDOG=1" if report.good else ""))
        try:
            self.follow(report)
        except Exception:  # noqa: BLE001  what follows a tick is no reason to end the daemon
            _log.exception("what follows a tick broke off")

    def _reload(self, regular: Job) -> None:
        if self.reload is None or self.stopping.is_set():
            return
        sd_notify("RELOADING=1")
        try:
            period_s = self.reload()
        except Exception:  # noqa: BLE001  what goes wrong with new settings must not end who has good ones
            _log.exception("the settings stay as they were")
            period_s = self.tick_s
        if period_s != self.tick_s:
            regular.reschedule(every(period_s))
            self.tick_s = period_s
        sd_notify("READY=1")

    def _beat(self, scheduler: BackgroundScheduler) -> None:
        if self.beat():
            scheduler.add_job(self._once, misfire_grace_time=None)


def _heard(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal's number is in the pipe already."""
