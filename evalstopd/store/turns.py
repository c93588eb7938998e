"""What every store agrees on about leases: who gets one, and what an old epoch may no longer write."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

from evalstopd.errors import Deposed
from evalstopd.ports import Lease


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as it is kept: until when it lasts, by the store's own clock, and for which cluster it was claimed."""

    holder: str
    epoch: int
    until_s: float
    cluster: str = ""


def given(held: Held | None, holder: str, for_s: float, now_s: float) -> Held | None:
    """Return what is kept once a holder has asked; None where the lease is another's and lasts."""
    if held is None:
        return Held(holder, 1, now_s + for_s)
    if held.holder == holder:
        return replace(held, until_s=now_s + for_s)
    return Held(holder, held.epoch + 1, now_s + for_s, held.cluster) if held.until_s <= now_s else None


def claimed(name: str, held: Held | None, epoch: int, cluster: str, others: Mapping[str, Held], now_s: float) -> Held:
    """Return this lease as the one that leads a cluster; `others` were claimed for it before. Raises Deposed.

    That is where the lease is of another epoch, or one of the others lasts: each daemon would think itself alone.
    """
    if held is None or held.epoch != epoch:
        raise passed_on(held, epoch)
    for other, its in others.items():
        if its.until_s > now_s:
            raise Deposed(
                f"nothing is done: under the lease {other!a} {its.holder!a} leads the cluster {cluster!a} already, so "
                f"nobody may lead it under the lease {name!a}: give its daemons one name in store.lease"
            )
    return replace(held, cluster=cluster)


def unclaimed(held: Held) -> Held:
    """Return a lease that is over without its cluster: should its holder come back, it must claim that anew."""
    return replace(held, epoch=held.epoch + 1, cluster="")


def lease_of(held: Held, now_s: float) -> Lease:
    """Return a kept lease as the port has it."""
    return Lease(held.holder, held.epoch, held.until_s - now_s, held.cluster)


def require_epoch(held: Held | None, epoch: int) -> None:
    """Raise Deposed where the lease has been given to another since this epoch."""
    if held is None or held.epoch != epoch:
        raise passed_on(held, epoch)


def passed_on(held: Held | None, epoch: int) -> Deposed:
    """Return what an old leader is told."""
    now = "nobody" if held is None else ascii(held.holder)
    return Deposed(f"nothing is written: the lease of epoch {epoch} has passed on, {now} leads")


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
            self.kept[name] = replace(held, until_s=monotonic())

    def claim(self, name: str, epoch: int, cluster: str) -> None:
        """Note which cluster the lease leads."""
        others = {other: its for other, its in self.kept.items() if its.cluster == cluster and other != name}
        self.kept[name] = claimed(name, self.kept.get(name), epoch, cluster, others, monotonic())
        self.kept.update({other: unclaimed(its) for other, its in others.items()})

    def leading(self, cluster: str) -> tuple[str, ...]:
        """Return the names of the leases that lead a cluster now."""
        now_s = monotonic()
        return tuple(sorted(name for name, its in self.kept.items() if its.cluster == cluster and its.until_s > now_s))

    def leader(self, name: str) -> Lease | None:
        """Return the lease as it is."""
        held = self.kept.get(name)
        return None if held is None else lease_of(held, monotonic())
