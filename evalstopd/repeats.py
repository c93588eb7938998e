"""The line of each pass in the log: trouble that stays the same is said once an hour, and when it is over."""

import logging
from dataclasses import dataclass

from evalstopd.loop import TickReport

AGAIN_S = 3600.0
_FIELDS = {"journal": {"EVENT": "pass"}}
_log = logging.getLogger("evalstopd")


@dataclass(slots=True)
class PassLog:
    """Logs one pass after another; moments are seconds of a clock that only goes forward."""

    _said: str = ""
    _said_s: float = 0.0
    _failed: int = 0

    def tell(self, report: TickReport, now_s: float) -> None:
        """Log a pass: a good one always, as a warning if it met new trouble; a bad one if its words are new.

        New is what was not logged just before, or not within the hour.
        """
        if report.good:
            if self._failed:
                _log.info("passes are good again, after %d that were not", self._failed)
            self._failed = 0
            trouble = "; ".join(report.troubles)
            _log.log(
                logging.WARNING if self._is_news(trouble, now_s) else logging.INFO, "%s", report.summary, extra=_FIELDS
            )
            return
        self._failed += 1
        _log.log(
            logging.WARNING if self._is_news(report.summary, now_s) else logging.DEBUG,
            "%s",
            report.summary,
            extra=_FIELDS,
        )

    def _is_news(self, trouble: str, now_s: float) -> bool:
        """Tell whether this trouble, if it is any, was not said within the hour, and remember it."""
        if trouble == self._said and now_s - self._said_s < AGAIN_S:
            return False
        self._said, self._said_s = trouble, now_s
        return trouble != ""
