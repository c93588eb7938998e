"""What is handed to the meters after each pass."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from evalstopd.core.caps import SITE, holding, holds_one_owner
from evalstopd.errors import EvalstopError
from evalstopd.loop import TickReport
from evalstopd.meters.port import Meters, Standing
from evalstopd.ports import Archive

_log = logging.getLogger("evalstopd")


@dataclass(frozen=True, slots=True)
class AfterPass:
    """Called after each pass; asks the store how things stand where the pass was good."""

    meters: Meters
    archive: Archive
    now_s: Callable[[], float]

    def __call__(self, report: TickReport, seconds: float, leads: bool) -> None:  # noqa: FBT001  a figure like the rest
        """Hand the figures over; trouble with the store is logged and costs nothing else."""
        self.meters.ticked(report, seconds, leads=leads)
        if not (leads and report.good):
            return
        try:
            self.meters.stands(self._standing())
        except EvalstopError as error:
            _log.warning("metrics: %s", error)

    def _standing(self) -> Standing:
        now_s = self.now_s()
        held = [each.scope for each in self.archive.breakers() if holding([each], now_s)]
        site, owners = held.count(SITE), sum(map(holds_one_owner, held))
        return Standing(self.archive.intents_by_state(), site, len(held) - site - owners, owners)
