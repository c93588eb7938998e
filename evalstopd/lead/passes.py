"""One pass of a daemon that may have to wait: the loop's if the seat is this process's, else a word who leads."""

from collections import Counter
from dataclasses import dataclass

from evalstopd.lead.seat import Seat
from evalstopd.loop import Loop, TickReport


@dataclass(frozen=True, slots=True)
class Passes:
    """The loop behind its seat. Who stands by asks neither Slurm nor MLflow, and does nothing."""

    loop: Loop
    seat: Seat

    def tick(self) -> TickReport:
        """Make one pass, or say why none is made; bad where it is not even known who leads."""
        if self.seat.ours:
            return self.loop.tick()
        return TickReport(good=self.seat.known, counts=Counter(), troubles=(), instead=self.seat.said)
