"""Keeps what estimates come from: accounting is read after a pass of the leader, once an hour, one call at a time."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from evalstopd.core.estimates import History, Kin
from evalstopd.errors import Rejected, Unavailable
from evalstopd.loop import TickReport
from evalstopd.ports import Clock, Histories, PastJobs, Span

_log = logging.getLogger("evalstopd")
DAY_S, HOUR_S = 86400.0, 3600.0
LAG_S = 120.0
"""Accounting hears of a job's end a little late: what ended within the last two minutes waits for the next reading."""
BETWEEN_S = 60.0
"""While older days are still to be read, one call a minute."""
PAUSE_S = 600.0
"""So long accounting is left alone after it gave no answer."""
LEAST_SPAN_S = 600.0


@dataclass(slots=True)
class Habits:
    """Called after each pass; `days` is asked anew each time: None means that nobody needs estimates.

    What was known last stays while accounting is away. A span that gave no answer is halved, for it may have been
    too much for one call.
    """

    past: PastJobs
    kept: Histories
    clock: Clock
    days: Callable[[], float | None]
    known: dict[str, History] = field(default_factory=dict)
    span_s: float = DAY_S
    next_s: float = 0.0
    away: bool = False

    def history(self, cluster: str) -> History:
        """Return what is known of a cluster's jobs now. Raises Unavailable where the store does not answer."""
        if cluster not in self.known:
            self.known[cluster] = self.kept.history(cluster) or History()
        return self.known[cluster]

    def __call__(self, report: TickReport, seconds: float, leads: bool) -> None:  # noqa: FBT001  a fact like the rest
        """Read on if it is time to."""
        del seconds
        now_s, days = self.clock.now_s(), self.days()
        if days is None or now_s < self.next_s or not (leads and report.good and report.cluster):
            return
        try:
            more = self._read_on(report.cluster, now_s, now_s - days * DAY_S)
        except Unavailable as error:
            self._say_away(error)
            self.span_s, self.next_s = max(LEAST_SPAN_S, self.span_s / 2), now_s + PAUSE_S
        except Rejected as error:
            # Another daemon read on: what it wrote is read at the next time.
            _log.info("estimates: %s", error)
            self.next_s = now_s + BETWEEN_S
        else:
            self._say_back()
            self.span_s, self.next_s = min(DAY_S, 2 * self.span_s), now_s + (BETWEEN_S if more else HOUR_S)

    def _read_on(self, cluster: str, now_s: float, first_s: float) -> bool:
        """Count what ended since the last reading, a day at most; tell whether there is more to read."""
        stored_s = self.kept.history_read_s(cluster)
        known = self.known.pop(cluster, None)
        if known is None or known.read_s != stored_s:
            known = self.kept.history(cluster) or History()
        since_s = first_s if stored_s is None else stored_s
        until_s = float(int(min(since_s + self.span_s, now_s - LAG_S)))
        if until_s > since_s:
            self._count(cluster, known, stored_s, Span(since_s, until_s))
        # Not before it is written: what is counted here and not there would be counted twice.
        self.known[cluster] = known
        return until_s < now_s - LAG_S - 1

    def _count(self, cluster: str, known: History, stored_s: float | None, span: Span) -> None:
        touched: set[Kin] = set()
        for life in self.past.ended(span):
            touched.update(known.add(life))
        known.read_until(span.until_s)
        surplus = known.surplus()
        known.forget(surplus)
        changed = {kin: known.tallies[kin] for kin in touched if kin in known.tallies}
        self.kept.note_history(cluster, stored_s, span.until_s, changed, surplus)

    def _say_away(self, error: Unavailable) -> None:
        if not self.away:
            _log.warning("estimates stay as they were: accounting cannot be read: %s", error)
        self.away = True

    def _say_back(self) -> None:
        if self.away:
            _log.info("accounting can be read again for estimates")
        self.away = False
