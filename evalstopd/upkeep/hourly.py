"""Upkeep after a good pass of the leader, once an hour, for a short while each time."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from evalstopd.errors import EvalstopError
from evalstopd.loop import Loop, TickReport
from evalstopd.ports import Upkeep
from evalstopd.settings import Settings
from evalstopd.upkeep.pins import drop_old_pins

_log = logging.getLogger("evalstopd")
HOUR_S, DAY_S = 3600.0, 86400.0
BATCH = 100
"""So many jobs are forgotten in one transaction: a pass of another daemon's must not wait for long."""


@dataclass(slots=True)
class Hourly:
    """Called after each pass; `settings` and `loop` are asked anew each time, as both may be reloaded."""

    book: Upkeep
    settings: Callable[[], Settings]
    loop: Callable[[], Loop]
    next_s: float = 0.0

    def __call__(self, report: TickReport, seconds: float, leads: bool) -> None:  # noqa: FBT001  a fact like the rest
        """Do what is due; what does not work is logged, and tried again in an hour."""
        del seconds
        now_s = self.loop().ports.clock.now_s()
        if not (leads and report.good and report.cluster) or now_s < self.next_s:
            return
        try:
            more = self._pins(report.cluster, now_s) or self._prune(report.cluster, now_s)
        except EvalstopError as error:
            _log.warning("upkeep: %s", error)
            more = False
        self.next_s = now_s + (0.0 if more else HOUR_S)

    def _pins(self, cluster: str, now_s: float) -> bool:
        days = self.settings().rules.pin_keep_days
        if not days:
            return False
        dropped, more = drop_old_pins(self.loop().ports, self.book, cluster, now_s - days * DAY_S)
        if dropped:
            _log.info("%d pins dropped of jobs that ended %g days ago and were not stopped", dropped, days)
        return more

    def _prune(self, cluster: str, now_s: float) -> bool:
        days = self.settings().store.keep_days
        if not days:
            return False
        forgotten = self.book.prune(cluster, now_s - days * DAY_S, BATCH)
        if forgotten:
            _log.info("points and watches forgotten of %d jobs that ended %g days ago undecided", forgotten, days)
        return forgotten == BATCH
