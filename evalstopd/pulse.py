"""The daemons' signs of life: noted after each pass, shown by `status --daemon`, and whether they are good enough."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalstopd.errors import EvalstopError
from evalstopd.loop import TickReport
from evalstopd.ports import Pulse, Pulses
from evalstopd.settings import Settings

_log = logging.getLogger("evalstopd")
LATE_TICKS = 3
_LATE_LEAST_S = 60.0
_LONGEST = 500


@dataclass(slots=True)
class NotePulse:
    """Called after each pass; `name` is the same for a daemon that is started again."""

    book: Pulses
    name: str
    pid: int
    version: str
    now_s: Callable[[], float]
    settings: Callable[[], Settings]
    good_s: float | None = None

    def __call__(self, report: TickReport, seconds: float, leads: bool) -> None:  # noqa: FBT001  a fact like the rest
        """Note it. A store that cannot be written is what the pass itself has said already."""
        del seconds
        now_s = self.now_s()
        self.good_s = now_s if report.good else self.good_s
        digest, said = self.settings().digest, report.summary[:_LONGEST]
        pulse = Pulse(self.name, self.pid, now_s, self.good_s, leads, self.version, digest, said)
        try:
            self.book.note_pulse(pulse)
        except EvalstopError as error:
            _log.debug("no sign of life could be noted: %s", error)


@dataclass(frozen=True, slots=True)
class PulseRow:
    """One daemon as it is shown: seconds since its last pass and its last good one (None: none yet)."""

    name: str
    role: str
    pid: int
    ago_s: float
    good_ago_s: float | None
    good: bool
    version: str
    digest: str
    summary: str


def pulse_rows(pulses: Sequence[Pulse], now_s: float, tick_s: float) -> tuple[PulseRow, ...]:
    """Return the daemons; `good` are those whose last good pass is at most three periods, and a minute, ago."""
    late_s = max(LATE_TICKS * tick_s, _LATE_LEAST_S)
    return tuple(
        PulseRow(
            each.name,
            "leads" if each.leads else "stands by",
            each.pid,
            now_s - each.at_s,
            None if each.good_s is None else now_s - each.good_s,
            each.good_s is not None and now_s - each.good_s <= late_s,
            each.version,
            each.digest,
            each.summary,
        )
        for each in pulses
    )


def alive(rows: Sequence[PulseRow]) -> bool:
    """Tell whether a daemon leads and is well."""
    return any(row.good and row.role == "leads" for row in rows)


def told(rows: Sequence[PulseRow]) -> list[str]:
    """Return a line for each daemon."""
    return [_line(row) for row in rows] or ["no daemon has worked on this store yet"]


def _line(row: PulseRow) -> str:
    good = "no good pass yet" if row.good_ago_s is None else f"last good pass {row.good_ago_s:.0f} s ago"
    return (
        f"{'ok ' if row.good else 'BAD'}  {row.name} (pid {row.pid}, {row.version}) {row.role}: {good}, "
        f"last pass {row.ago_s:.0f} s ago: {row.summary}"
    )
