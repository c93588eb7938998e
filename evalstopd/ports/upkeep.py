"""The store, for forgetting what is long over."""

from typing import Protocol

from evalstopd.core.watch import Pin


class Upkeep(Protocol):
    """What is kept of jobs long over. Each call is one short transaction."""

    def old_pins(self, cluster: str, over_before_s: float, most: int) -> tuple[Pin, ...]:
        """Return pins that are on a disk, of jobs over since before a moment, that no stop was done or begun to."""

    def prune(self, cluster: str, over_before_s: float, most: int) -> int:
        """Forget points and watches of so many jobs over since before a moment; return how many jobs.

        Nothing is forgotten of a job that a stop was decided or booked of, or that has a pin on a disk. Remarks,
        bindings and breakers' turns stay in any case.
        """
