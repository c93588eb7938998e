"""Whether this process leads: its lease, renewed by a beat of its own, and over before another can have it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from evalstopd.errors import Deposed, EvalstopError
from evalstopd.ports import Lease, Leases, Store

_log = logging.getLogger("evalstopd.lead")


class LedStore(Store, Leases, Protocol):
    """A store that knows who leads."""


@dataclass(slots=True)
class Lead:
    """One process's lease. Threads share it: a beat renews, passes ask.

    `now_s` is a clock that only goes forward and counts while the machine sleeps; `holder` names this process and
    no other, ever. The lease counts from before it was asked for, so here it is over first.
    """

    store: LedStore
    name: str
    holder: str
    lease_s: float
    now_s: Callable[[], float]
    _lock: Lock = field(default_factory=Lock)
    _epoch: int = 0
    _until_s: float = 0.0
    _known_until_s: float = 0.0
    _said: str = ""
    _claimed: tuple[int, str] = (0, "")
    _theirs: str = ""

    def beat(self) -> bool:
        """Renew the lease, or take it if it is free; tell whether it has just become ours. Never raises for trouble."""
        asked_s, led = self.now_s(), self.leads
        try:
            lease = self.store.take(self.name, self.holder, self.lease_s)
        except EvalstopError as error:
            self._known_until_s = 0.0
            # The passes say so, too, and once.
            self._say(f"the lease could not be renewed: {error}", logging.DEBUG)
            return False
        self._known_until_s = asked_s + self.lease_s
        self._note(lease, asked_s)
        return self.leads and not led

    @property
    def leads(self) -> bool:
        """Tell whether the lease is this process's and not over."""
        with self._lock:
            return self._epoch > 0 and self.now_s() < self._until_s

    @property
    def theirs(self) -> str:
        """Return the cluster that another process leads under this lease, as far as that was claimed; else nothing."""
        return self._theirs

    @property
    def known(self) -> bool:
        """Tell whether the store's last answer was one, and young enough that its lease may still hold."""
        return self.now_s() < self._known_until_s

    @property
    def said(self) -> str:
        """Return how things stand, in words. Who waits for an answer knows nothing once the last one is too old."""
        if self._known_until_s and not self.known:
            return f"stands aside: the store has not answered for {self.lease_s:g} s, so who leads is not known"
        return self._said or "has not asked for the lease yet"

    def epoch(self, for_s: float = 0.0) -> int:
        """Return this leader's epoch. Raises Deposed unless the lease surely lasts for so many seconds more."""
        with self._lock:
            left_s = self._until_s - self.now_s()
            if self._epoch == 0 or left_s <= for_s:
                raise Deposed("nothing is done: another daemon leads, or this one's lease is nearly over")
            return self._epoch

    def claim(self, cluster: str) -> None:
        """See that no lease of another name leads the cluster; the store is asked once in an epoch. Raises Deposed."""
        wanted = self.epoch(), cluster
        if self._claimed != wanted:
            self.store.claim(self.name, *wanted)
            self._claimed = wanted
            self._say(self._how(wanted[0]), logging.INFO)

    def resign(self) -> None:
        """Give up the lease, so that the next leader need not wait for its end. Never raises for trouble."""
        with self._lock:
            led, self._epoch = self._epoch > 0, 0
        try:
            if led:
                self.store.resign(self.name, self.holder)
        except EvalstopError as error:
            _log.warning("the lease could not be given up: %s", error)

    def _note(self, lease: Lease, asked_s: float) -> None:
        ours = lease.holder == self.holder
        with self._lock:
            self._epoch = lease.epoch if ours else 0
            self._until_s = asked_s + self.lease_s if ours else 0.0
        self._theirs = "" if ours else lease.cluster
        waits = f"stands by: {lease.holder!a} leads, epoch {lease.epoch}"
        self._say(self._how(lease.epoch) if ours else waits, logging.INFO)

    def _how(self, epoch: int) -> str:
        """Return how the lease's holder stands: who has it leads only once its cluster is no other lease's."""
        claimed, cluster = self._claimed
        how = f"leads the cluster {cluster!a}" if claimed == epoch else f"has the lease {self.name!a}"
        return f"{how}, epoch {epoch}"

    def _say(self, words: str, level: int) -> None:
        """Log what is new only."""
        if words != self._said:
            _log.log(level, "%s %s", self.holder, words)
        self._said = words
