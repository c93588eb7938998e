"""The daemons' signs of life: this one's noted, those of all on the store read."""

import os
import socket

from evalstopd import __version__
from evalstopd.adapters.system import is_running
from evalstopd.lead.seat import LeaseSeat, Seat
from evalstopd.ports import Pulse
from evalstopd.pulse import NotePulse, PulseRow, host_of, lease_of, pulse_rows
from evalstopd.service import Service
from evalstopd.settings import Settings
from evalstopd.slot import Slot, take_slot
from evalstopd.store.engine import parse
from evalstopd.store.sql import SqlStore
from evalstopd.wiring.host import make_clock
from evalstopd.wiring.store import make_checked_store


def note_pulses(service: Service, store: SqlStore) -> None:
    """Let the service note its signs of life, under a name that no other daemon on the store has."""
    slot, now_s = _slot(service.settings, service.seat), make_clock().now_s
    seat = service.seat
    pulse = NotePulse(
        store, slot.name, os.getpid(), __version__, now_s, lambda: service.settings, seat.holder, lambda: seat.lost
    )
    service.after.append(pulse)
    service.ending += [pulse.end, slot.release]


def _slot(settings: Settings, seat: Seat) -> Slot:
    """Return the daemon's name among those on its store, of which SQLite's has no other on any host."""
    name = f"{settings.store.lease}@{socket.gethostname()}"
    # Not the whole address: daemons may reach one database by several.
    database = parse(settings.store.url).database or ""
    return take_slot(database, name) if isinstance(seat, LeaseSeat) else Slot(name, lambda: None)


def daemon_rows(settings: Settings) -> tuple[PulseRow, ...]:
    """Return the daemons that worked on the store within a week, and which of them leads."""
    store = make_checked_store(settings)
    pulses = store.pulses()
    leases = {name: lease for name in set(map(lease_of, pulses)) if (lease := store.leader(name)) is not None}
    return pulse_rows(pulses, make_clock().now_s(), settings.daemon.tick_s, leases, _is_gone)


def _is_gone(pulse: Pulse) -> bool:
    """Tell whether it is known that the daemon's process has ended: that can be seen on its own host alone."""
    return host_of(pulse) == socket.gethostname() and not is_running(pulse.pid, pulse.at_s)
