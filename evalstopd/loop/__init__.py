"""The loop: the only place where core meets the ports. Observe, decide, record, act, confirm."""

from evalstopd.loop.report import TickReport, Tracker
from evalstopd.loop.tick import Loop, Stance

__all__ = ["Loop", "Stance", "TickReport", "Tracker"]
