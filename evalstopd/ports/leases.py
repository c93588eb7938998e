"""Which of several daemons on one store leads."""

from dataclasses import dataclass
from typing import Protocol

from evalstopd.ports.store import Changes


@dataclass(frozen=True, slots=True)
class Lease:
    """Who leads: `epoch` counts the leaders there were, `left_s` is how long it lasts (negative: over).

    `cluster` is the one that was last claimed under it; empty where none is.
    """

    holder: str
    epoch: int
    left_s: float
    cluster: str = ""


class Leases(Protocol):
    """Which of several daemons on one store leads, and writing as the leader only. A lease has a name.

    Raises Unavailable where the store cannot be reached: who cannot renew must take the lease for over in time.
    """

    def take(self, name: str, holder: str, for_s: float) -> Lease:
        """Take the lease if it is free or over, renew it if it is the holder's; return it, whoever has it then.

        A holder's name must be that of one process alone. Each new holder has a higher epoch.
        """

    def resign(self, name: str, holder: str) -> None:
        """End the holder's lease at once; another's stays."""

    def leader(self, name: str) -> Lease | None:
        """Return the lease as it is, over or not; None if nobody ever had it."""

    def claim(self, name: str, epoch: int, cluster: str) -> None:
        """Note which cluster is led under this lease. Raises Deposed where that is of another epoch.

        And where another lease that lasts leads it: of two names for one cluster each leader would think itself alone.
        One that is over loses the cluster, and its holder, should it come back, its epoch: it must claim anew.
        """

    def leading(self, cluster: str) -> tuple[str, ...]:
        """Return the names of the leases that lead a cluster now: one, or none."""

    def record_as(self, name: str, epoch: int, changes: Changes) -> None:
        """Write as `Store.record` does. Raises Deposed, and writes nothing, where the lease is of another epoch.

        Both happen in one transaction: nothing of an old leader can be written after the new one has begun.
        """
