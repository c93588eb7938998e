"""The daemons' signs of life."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pulse:
    """A daemon's last sign of life: its last pass, and its last good one, in seconds since the epoch.

    `holder` is what it calls itself where there is a lease, else empty; `ended` where it was told to end, and did.
    """

    name: str
    pid: int
    at_s: float
    good_s: float | None
    leads: bool
    version: str
    digest: str
    summary: str
    holder: str = ""
    ended: bool = False


class Pulses(Protocol):
    """The signs of life of the daemons on one store."""

    def note_pulse(self, pulse: Pulse) -> None:
        """Keep a daemon's sign of life in the place of its last one; forget those unheard of for a week."""

    def pulses(self) -> tuple[Pulse, ...]:
        """Return the last sign of life of each daemon, by name."""
