"""What every store agrees on about leases: who gets one, and what an old epoch may no longer write."""

from dataclasses import dataclass, field
from time import monotonic

from evalstopd.errors import Deposed
from evalstopd.ports import Lease


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as it is kept: until when it lasts, by the store's own clock."""

    holder: str
    epoch: int
    until_s: float


def given(held: Held | None, holder: str, for_s: float, now_s: float) -> Held | None:
    """Return what is kept once a holder has asked; None where the lease is another's and lasts."""
    if held is None:
        return Held(holder, 1, now_s + for_s)
    if held.holder == holder:
        return Held(holder, held.epoch, now_s + for_s)
    return Held(holder, held.epoch + 1, now_s + for_s) if held.until_s <= now_s else None


def lease_of(held: Held, now_s: float) -> Lease:
    """Return a kept lease as the port has it."""
    return Lease(held.holder, held.epoch, held.until_s - now_s)


def require_epoch(held: Held | None, epoch: int) -> None:
    """Raise Deposed where the lease has been given to another since this epoch."""
    if held is None or held.epoch != epoch:
        now = "nobody" if held is None else ascii(held.holder)
        raise Deposed(f"nothing is written: the lease of epoch {epoch} has passed on, {now} leads")


@dataclass(frozen=True, slots=True)
class MemoryLeases:
    """Leases in a dictionary; whoever shares it holds a lock."""

    kept: dict[str, Held] = field(default_factory=dict)

    def take(self, name: str, holder: str, for_s: float) -> Lease:
        """Give the lease if it is the holder's, free or over; return it as it is then."""
        now_s = monotonic()
        self.kept[name] = given(self.kept.get(name), holder, for_s, now_s) or self.kept[name]
        return lease_of(self.kept[name], now_s)

    def resign(self, name: str, holder: str) -> None:
        """End a holder's lease now."""
        held = self.kept.get(name)
        if held is not None and held.holder == holder:
            self.kept[name] = Held(holder, held.epoch, monotonic())

    def leader(self, name: str) -> Lease | None:
        """Return the lease as it is."""
        held = self.kept.get(name)
        return None if held is None else lease_of(held, monotonic())
