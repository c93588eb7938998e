"""The daemons' signs of life: noted after each pass, shown by `status --daemon`, and whether they are good enough."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from evalstopd.errors import EvalstopError
from evalstopd.loop import TickReport
from evalstopd.ports import Lease, Pulse, Pulses
from evalstopd.settings import Settings

_log = logging.getLogger("evalstopd")
LATE_TICKS = 3
_LATE_LEAST_S = 60.0
_LONGEST = 500
_NONE: Mapping[str, Lease] = MappingProxyType({})
_LEADS, _WAITS, _ENDED = "leads", "stands by", "has ended"
_CLAIMS, _GONE = "leads no cluster", "is gone"


@dataclass(slots=True)
class NotePulse:
    """Called after each pass; `name` is the same for a daemon that is started again.

    While the store is `lost` nothing is noted: the name may be that of another daemon, which works on what lies there.
    """

    book: Pulses
    name: str
    pid: int
    version: str
    now_s: Callable[[], float]
    settings: Callable[[], Settings]
    holder: str = ""
    lost: Callable[[], bool] = lambda: False
    good_s: float | None = None

    def __call__(self, report: TickReport, seconds: float, leads: bool) -> None:  # noqa: FBT001  a fact like the rest
        """Note it. A store that cannot be written is what the pass itself has said already."""
        del seconds
        self.good_s = self.now_s() if report.good else self.good_s
        self._note(leads, report.summary[:_LONGEST], ended=False)

    def end(self) -> None:
        """Note that the daemon was told to end: who is missed then is missed on purpose."""
        self._note(leads=False, said="was told to end", ended=True)

    def _note(self, leads: bool, said: str, *, ended: bool) -> None:  # noqa: FBT001  a fact like the rest
        if self.lost():
            return
        now_s, digest = self.now_s(), self.settings().digest
        pulse = Pulse(
            self.name, self.pid, now_s, self.good_s, leads, self.version, digest, said, self.holder, ended=ended
        )
        try:
            self.book.note_pulse(pulse)
        except EvalstopError as error:
            _log.debug("no sign of life could be noted: %s", error)


@dataclass(frozen=True, slots=True)
class PulseRow:
    """One daemon as it is shown: seconds since its last pass and its last good one (None: none yet).

    `role` is `leads`, `stands by`, `led` (the lease has gone to another, or is over), `leads no cluster` (it has the
    lease, and another lease's leader the cluster, or Slurm has not answered yet), `has ended` (it was told to) or
    `is gone` (its process has ended without that).
    """

    name: str
    role: str
    pid: int
    ago_s: float
    good_ago_s: float | None
    good: bool
    version: str
    digest: str
    summary: str


def pulse_rows(
    pulses: Sequence[Pulse],
    now_s: float,
    tick_s: float,
    leases: Mapping[str, Lease] = _NONE,
    gone: Callable[[Pulse], bool] = lambda _: False,
) -> tuple[PulseRow, ...]:
    """Return the daemons, who leads first; `good` are those whose last good pass is young enough.

    That is at most three periods, and a minute, ago. `gone` tells whose process is known to run no more, which needs no
    such patience. `leases` has each lease by its name: it says who leads, for a
    daemon that was killed cannot say any more that it does not.
    """
    late_s = max(LATE_TICKS * tick_s, _LATE_LEAST_S)
    rows = [
        _row(each, now_s, late_s, _GONE if not each.ended and gone(each) else _role(each, leases)) for each in pulses
    ]
    return tuple(sorted(rows, key=lambda row: (row.role != _LEADS, row.name)))


def _row(pulse: Pulse, now_s: float, late_s: float, role: str) -> PulseRow:
    good_ago_s = None if pulse.good_s is None else now_s - pulse.good_s
    good = role not in (_ENDED, _GONE) and good_ago_s is not None and good_ago_s <= late_s
    return PulseRow(
        pulse.name, role, pulse.pid, now_s - pulse.at_s, good_ago_s, good, pulse.version, pulse.digest, pulse.summary
    )


def host_of(pulse: Pulse) -> str:
    """Return the host that the daemon runs on, as that calls itself."""
    return pulse.name.rpartition("@")[2].partition("#")[0]


def lease_of(pulse: Pulse) -> str:
    """Return the name of the lease that the daemon holds or waits for."""
    return pulse.name.rpartition("@")[0]


def _role(pulse: Pulse, leases: Mapping[str, Lease]) -> str:
    if pulse.ended:
        return _ENDED
    lease = leases.get(lease_of(pulse))
    if lease is None or not pulse.holder:
        return _LEADS if pulse.leads else _WAITS
    if lease.left_s > 0 and lease.holder == pulse.holder:
        return _LEADS if lease.cluster else _CLAIMS
    return "led" if pulse.leads else _WAITS


def alive(rows: Sequence[PulseRow]) -> bool:
    """Tell whether a daemon leads and is well."""
    return any(row.good and row.role == _LEADS for row in rows)


def missed(rows: Sequence[PulseRow]) -> bool:
    """Tell whether one that was not told to end is not well."""
    return any(not row.good and row.role != _ENDED for row in rows)


def told(rows: Sequence[PulseRow]) -> list[str]:
    """Return a line for each daemon, and one where those that work are not alike."""
    if not rows:
        return ["no daemon has worked on this store yet"]
    return [*map(_line, rows), *_unlike(rows)]


def _line(row: PulseRow) -> str:
    good = "no good pass yet" if row.good_ago_s is None else f"last good pass {row.good_ago_s:.0f} s ago"
    if row.role == _ENDED:
        return f"off  {row.name} (pid {row.pid}, {row.version}) was told to end {row.ago_s:.0f} s ago: {good}"
    if row.role == _GONE:
        return (
            f"BAD  {row.name} (pid {row.pid}, {row.version}) is gone: its process ended without being told to; {good}"
        )
    return (
        f"{'ok ' if row.good else 'BAD'}  {row.name} (pid {row.pid}, {row.version}) {row.role}: {good}, "
        f"last pass {row.ago_s:.0f} s ago: {row.summary}"
    )


def _unlike(rows: Sequence[PulseRow]) -> Iterator[str]:
    """Say where daemons would decide differently, so that a take-over would change more than who leads."""
    at_work = [row for row in rows if row.good]
    said = {
        "version": {row.name: row.version for row in at_work},
        "settings": {row.name: row.digest for row in at_work},
    }
    for what, of in said.items():
        if len(set(of.values())) > 1:
            yield f"they differ in {what}: {', '.join(f'{name} {value}' for name, value in of.items())}"
