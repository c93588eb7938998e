"""What jobs of the past used of their limits: read from accounting, kept as counts, for estimates."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from evalstopd.core.estimates import History, Kin, PastLife, Tally
from evalstopd.ports.clock import Span


class PastJobs(Protocol):
    """Accounting, asked for the lives of jobs that are over: one call, whatever their number."""

    def ended(self, span: Span) -> Sequence[PastLife]:
        """Return the lives that ended within a span.

        Raises Unavailable, also where there are more than can be read at once: ask for a shorter span.
        """


class Histories(Protocol):
    """What jobs of the past used of their limits, as counts: no jobs, and no names of theirs."""

    def history(self, cluster: str) -> History | None:
        """Return what is known of a cluster's jobs; None where nothing was ever read."""

    def history_read_s(self, cluster: str) -> float | None:
        """Return up to when accounting has been read."""

    def note_history(
        self, cluster: str, since_s: float | None, read_s: float, changed: Mapping[Kin, Tally], gone: Collection[Kin]
    ) -> None:
        """Replace these tallies, drop those, and note that all up to a moment is in them, in one transaction.

        Raises Rejected, and writes nothing, where accounting has been read to another moment than `since_s`: another
        daemon went on. So nothing is counted twice.
        """
