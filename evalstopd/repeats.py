"""The line of each pass in the log: trouble that stays the same is said once an hour, and when it is over."""

import logging
from dataclasses import dataclass

from evalstopd.loop import TickReport

AGAIN_S = 3600.0
_log = logging.getLogger("evalstopd")


@dataclass(slots=True)
class PassLog:
    """Logs one pass after another; moments are seconds of a clock that only goes forward."""

    _said: str = ""
    _said_s: float = 0.0
    _failed: int = 0

    def tell(self, report: TickReport, now_s: float) -> None:
        """Log a pass: a good one always, a bad one unless its very words were logged within the hour."""
        if report.good:
            if self._failed:
                _log.info("passes are good again, after %d that were not", self._failed)
            self._said, self._failed = "", 0
            _log.info("%s", report.summary)
            return
        self._failed += 1
        repeated = report.summary == self._said and now_s - self._said_s < AGAIN_S
        _log.log(logging.DEBUG if repeated else logging.WARNING, "%s", report.summary)
        if not repeated:
            self._said, self._said_s = report.summary, now_s
