"""The seat of the one daemon that acts, and what is done only with it."""

import os
import secrets
import socket
from dataclasses import replace

from evalstopd.adapters.system import boottime_s
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.lead.fence import fenced
from evalstopd.lead.lead import Lead
from evalstopd.lead.seat import LeaseSeat, OwnSeat, Seat
from evalstopd.loop import Loop, TickReport
from evalstopd.settings import SPARE_S, Settings
from evalstopd.store.lock import lock_alone
from evalstopd.wiring.store import make_store


def make_seat(settings: Settings) -> Seat:
    """Return the seat of the one daemon that works on the store. Raises Unavailable where SQLite's is taken."""
    lock = lock_alone(settings.store.url)
    if lock is not None:
        return OwnSeat(lock.release, lambda: lock.replaced)
    holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    return LeaseSeat(Lead(make_store(settings), settings.store.lease, holder, settings.store.lease_s, boottime_s))


def seated(loop: Loop, seat: Seat, settings: Settings) -> Loop:
    """Return the loop as one that writes and acts only while its process has the seat."""
    if not isinstance(seat, LeaseSeat):
        return loop
    return replace(loop, ports=fenced(loop.ports, seat.lead, settings.slurm.time_limit_s + SPARE_S))


def tick_alone(loop: Loop, settings: Settings) -> TickReport:
    """Make one pass, unless a daemon works on the store: that raises Unavailable."""
    try:
        seat = make_seat(settings)
    except EvalstopError:
        # What was told at the start may wait to be sent.
        loop.close()
        raise
    loop = seated(loop, seat, settings)
    seat.beat()
    try:
        if not seat.ours:
            raise Unavailable(f"no pass is made: this process {seat.said}")
        return loop.tick()
    finally:
        loop.close()
        seat.leave()
