"""The seat of the one daemon that works on a store: how it is taken, kept and left, whatever kind the store is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from evalstopd.lead.lead import Lead


class Seat(Protocol):
    """Where one process sits at a time."""

    @property
    def beat_s(self) -> float:
        """Return how often `beat` wants to be called, in seconds; 0: never again."""

    @property
    def ours(self) -> bool:
        """Tell whether this process sits there."""

    @property
    def known(self) -> bool:
        """Tell whether it could be learned who sits there."""

    @property
    def lost(self) -> bool:
        """Tell whether the store is another than the one this process sat at: nothing may be written to it."""

    @property
    def said(self) -> str:
        """Return how things stand, in words."""

    @property
    def holder(self) -> str:
        """Return what this process calls itself where several may sit there; else nothing."""

    @property
    def theirs(self) -> str:
        """Return the cluster that another process leads from there; nothing where none does, or it is not known."""

    def beat(self) -> bool:
        """Take or keep the seat; tell whether it has just become ours."""

    def leave(self) -> None:
        """Make room for another."""


def led_elsewhere(lease: str, theirs: str, own: str) -> str:
    """Say that a lease leads another cluster than one's own, which nobody watches under it; else nothing."""
    if not theirs or not own or theirs == own:
        return ""
    return (
        f"nobody watches the cluster {own!a} under the lease {lease!a}, which leads the cluster {theirs!a}: give each "
        "cluster a store.lease of its own"
    )


@dataclass(frozen=True, slots=True)
class LeaseSeat:
    """The seat of a store that several daemons may share: the one with the lease leads, the others wait."""

    lead: Lead

    @property
    def beat_s(self) -> float:
        """Return a third of the lease: two renewals may fail."""
        return self.lead.lease_s / 3

    @property
    def ours(self) -> bool:
        """Tell whether this process leads."""
        return self.lead.leads

    @property
    def known(self) -> bool:
        """Tell whether the store answered when it was last asked."""
        return self.lead.known

    @property
    def lost(self) -> bool:
        """Tell that whoever has the lease of a database has it there, whichever that is."""
        return False

    @property
    def said(self) -> str:
        """Return who leads."""
        return self.lead.said

    @property
    def holder(self) -> str:
        """Return the lease's holder, where that is this process."""
        return self.lead.holder

    @property
    def theirs(self) -> str:
        """Return which cluster another process leads under the lease."""
        return self.lead.theirs

    def beat(self) -> bool:
        """Renew the lease, or take it if it is free."""
        return self.lead.beat()

    def leave(self) -> None:
        """Give the lease up."""
        self.lead.resign()


@dataclass(frozen=True, slots=True)
class OwnSeat:
    """The seat of a store that one process has locked for itself.

    `release` ends what else it keeps of it; `replaced` tells whether another store lies in its place, locked by nobody
    or by another process.
    """

    release: Callable[[], None] = lambda: None
    replaced: Callable[[], bool] = lambda: False
    beat_s: float = 0.0
    holder: str = ""
    theirs: str = ""

    @property
    def ours(self) -> bool:
        """Tell whether what this process has locked is still the store."""
        return not self.replaced()

    @property
    def known(self) -> bool:
        """Tell the same: who works on the store in its place is not known."""
        return self.ours

    @property
    def lost(self) -> bool:
        """Tell whether another store lies in its place."""
        return self.replaced()

    @property
    def said(self) -> str:
        """Return how things stand."""
        return (
            "is alone on its store"
            if self.ours
            else "works no longer: the store's file was replaced: restart the daemon"
        )

    def beat(self) -> bool:
        """Keep it."""
        return False

    def leave(self) -> None:
        """End all but the lock, which ends with the process."""
        self.release()
