"""The store on SQLite or PostgreSQL: Store, Archive, Accounts and Chain of the ports, each call one transaction."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn, Decision
from evalstopd.core.chain import Head, Held
from evalstopd.core.credit import Credit
from evalstopd.core.estimates import History, Kin, Tally
from evalstopd.core.intent import Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey, Point
from evalstopd.core.preempt import Preemption
from evalstopd.core.watch import Lived, Pin, Remark, Watch
from evalstopd.ports import Book, Changes, Lease, Pulse, Span
from evalstopd.store import habits, leases, order, pulses, reading, sealed, upkeep
from evalstopd.store.engine import connect, parse
from evalstopd.store.failures import translated
from evalstopd.store.version import require_version
from evalstopd.store.writing import write


class SqlStore:
    """Implements Store, Archive, Accounts and Chain.

    Threads may share it: connections are made inside the calling thread.

    Every call raises Unavailable where the database does not answer or is locked for too long, Fatal where
    its schema is of another version. `record` raises Rejected, and writes nothing, for a lost race (an intent
    that another daemon has moved on) and for what no database can hold (a number beyond 64 bits).
    """

    def __init__(self, url: str) -> None:
        self._url = parse(url)
        self._engines = connect(self._url)

    def close(self) -> None:
        """Close what is kept open."""
        self._engines.dispose()

    def record(self, changes: Changes) -> None:
        """Write all changes in one transaction, or none.

        An intent's state is compared and set: only the same state or one that leads to the new one may be
        replaced. The evidence of a stored intent never changes. Writing the same again does no harm.
        """
        with self._writing() as connection:
            write(connection, changes)

    def record_as(self, name: str, epoch: int, changes: Changes) -> None:
        """Write all changes, or none: Deposed is raised in the same transaction where the lease is of another epoch."""
        with self._writing() as connection:
            leases.require_epoch(connection, name, epoch)
            write(connection, changes)

    def take(self, name: str, holder: str, for_s: float) -> Lease:
        """Take the lease if it is free, over or the holder's; return it as it is then."""
        with self._writing() as connection:
            return leases.take(connection, name, holder, for_s)

    def resign(self, name: str, holder: str) -> None:
        """End the holder's lease at once; another's stays."""
        with self._writing() as connection:
            leases.resign(connection, name, holder)

    def leader(self, name: str) -> Lease | None:
        """Return the lease as it is, over or not; None if nobody ever had it."""
        with self._reading() as source:
            return leases.leader(source, name)

    def claim(self, name: str, epoch: int, cluster: str) -> None:
        """Note which cluster the lease leads. Raises Deposed where another that lasts leads it."""
        with self._writing() as connection:
            leases.claim(connection, name, epoch, cluster)

    def leading(self, cluster: str) -> tuple[str, ...]:
        """Return the names of the leases that lead a cluster now."""
        with self._reading() as source:
            return leases.leading(source, cluster)

    def book(self, cluster: str) -> Book:
        """Return what is open on a cluster, from one state of the store."""
        with self._reading() as source:
            return reading.book(source, cluster)

    def holders(self, run_ids: Sequence[str]) -> Mapping[str, Binding]:
        """Return each of these runs' last binding, to ended jobs too; runs never bound are left out."""
        with self._reading() as source:
            return reading.holders(source, run_ids)

    def points(self, keys: Sequence[JobKey]) -> Mapping[JobKey, tuple[Point, ...]]:
        """Return the stored points of these jobs, over all their lives and runs; an empty tuple for those without."""
        with self._reading() as source:
            found = reading.points(source, [key.text for key in keys])
        return {key: order.in_point_order(found.get(key.text, ())) for key in keys}

    def decisions(self, cluster: str, since_s: float) -> tuple[Decision, ...]:
        """Return the stops that were decided, would have been, or were acted on since then; the oldest first."""
        with self._reading() as source:
            return order.oldest_decisions(reading.decisions(source, cluster, since_s))

    def preemptions(self, cluster: str, since_s: float) -> tuple[Preemption, ...]:
        """Return the preemptions asked for since then; the oldest first."""
        with self._reading() as source:
            return order.oldest_preemptions(reading.preemptions(source, cluster, since_s))

    def stops_of(self, cluster: str, job_ids: Sequence[str]) -> tuple[Intent, ...]:
        """Return the stops done to jobs of these ids: held, confirmed or undone; the one decided last comes first."""
        with self._reading() as source:
            return order.newest_intents(reading.stops(source, cluster, job_ids))

    def find(self, job_id: str) -> tuple[Watch, ...]:
        """Return the watched jobs that have had this id; the one first seen last comes first."""
        with self._reading() as source:
            return order.newest_watches(reading.watches_of_id(source, job_id))

    def recent(self, limit: int) -> tuple[Watch, ...]:
        """Return the watched jobs that were first seen last, the latest first."""
        with self._reading() as source:
            return order.newest_watches(reading.newest_watches(source, limit))

    def watched_since(self, first_s: float) -> tuple[Watch, ...]:
        """Return the watched jobs first seen at a moment or later, the latest first."""
        with self._reading() as source:
            return order.newest_watches(reading.watches_since(source, first_s))

    def intents_of(self, keys: Sequence[JobKey]) -> tuple[Intent, ...]:
        """Return the intents of these jobs, the latest first."""
        with self._reading() as source:
            return order.newest_intents(reading.intents(source, [key.text for key in keys]))

    def events_of(self, intent_ids: Sequence[str]) -> tuple[IntentEvent, ...]:
        """Return the events of these intents, intent by intent as asked for, each intent's in order."""
        with self._reading() as source:
            return order.in_event_order(reading.events(source, intent_ids), intent_ids)

    def pins_of(self, keys: Sequence[JobKey]) -> tuple[Pin, ...]:
        """Return the pins of these jobs; the one wanted last comes first."""
        with self._reading() as source:
            return order.newest_pins(reading.pins(source, [key.text for key in keys]))

    def would_be_of(self, keys: Sequence[JobKey]) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops of these jobs, the latest first."""
        with self._reading() as source:
            return order.newest_would_be(reading.would_be(source, [key.text for key in keys]))

    def credits_of(self, keys: Sequence[JobKey]) -> tuple[Credit, ...]:
        """Return what was credited for undone stops of these jobs, the latest first."""
        with self._reading() as source:
            return order.newest_credits(reading.credits_to(source, [key.text for key in keys]))

    def remarks_of(self, subjects: Sequence[str]) -> tuple[Remark, ...]:
        """Return what was remarked on these subjects, the latest first."""
        with self._reading() as source:
            return order.newest_remarks(reading.remarks(source, subjects))

    def intents_within(self, span: Span) -> tuple[Intent, ...]:
        """Return the intents decided within a span, the oldest first."""
        with self._reading() as source:
            return order.oldest_intents(reading.intents_within(source, span))

    def would_be_within(self, span: Span) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops booked within a span, the oldest first."""
        with self._reading() as source:
            return order.oldest_would_be(reading.would_be_within(source, span))

    def remarks_within(self, span: Span) -> tuple[Remark, ...]:
        """Return the remarks made within a span, in the order they were written."""
        with self._reading() as source:
            return tuple(reading.remarks_within(source, span))

    def watches_of(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Watch]:
        """Return the watches of these jobs; jobs never watched are left out."""
        with self._reading() as source:
            return {watch.key: watch for watch in reading.watches(source, [key.text for key in keys])}

    def lives_of(self, keys: Sequence[JobKey]) -> tuple[Lived, ...]:
        """Return all lives of these jobs, job by job in their order."""
        with self._reading() as source:
            return order.in_life_order(reading.lives(source, [key.text for key in keys]))

    def head(self) -> Head | None:
        """Return where the chain ends by the store's own note; None where that is gone."""
        with self._reading() as source:
            return sealed.head(source)

    def held(self, after: int, most: int) -> tuple[Held, ...]:
        """Return the links after a number, in order, each with what its row is now."""
        with self._reading() as source:
            return sealed.held(source, after, most)

    def unsealed(self, most: int) -> tuple[tuple[str, str], ...]:
        """Return kind and name of rows that no link seals, `most` at most of each kind."""
        with self._reading() as source:
            return sealed.unsealed(source, most)

    def breakers(self) -> tuple[BreakerTurn, ...]:
        """Return the last turn of each breaker, by cluster and scope."""
        with self._reading() as source:
            return order.in_scope_order(reading.breakers(source))

    def history(self, cluster: str) -> History | None:
        """Return what is known of a cluster's jobs; None where nothing was ever read."""
        with self._reading() as source:
            return habits.history(source, cluster)

    def history_read_s(self, cluster: str) -> float | None:
        """Return up to when accounting has been read."""
        with self._reading() as source:
            return habits.read_s(source, cluster)

    def note_history(
        self, cluster: str, since_s: float | None, read_s: float, changed: Mapping[Kin, Tally], gone: Collection[Kin]
    ) -> None:
        """Write tallies and how far was read. Raises Rejected where that is another moment than `since_s`."""
        with self._writing() as connection:
            habits.note(connection, cluster, since_s, read_s, changed, gone)

    def note_pulse(self, pulse: Pulse) -> None:
        """Keep a daemon's sign of life in the place of its last one; forget those unheard of for a week."""
        with self._writing() as connection:
            pulses.note(connection, pulse)

    def pulses(self) -> tuple[Pulse, ...]:
        """Return the last sign of life of each daemon, by name."""
        with self._reading() as source:
            return pulses.all_of(source)

    def old_pins(self, cluster: str, over_before_s: float, most: int) -> tuple[Pin, ...]:
        """Return pins of jobs over since before a moment that no stop was done to, the oldest first."""
        with self._reading() as source:
            return tuple(upkeep.old_pins(source, cluster, over_before_s, most))

    def prune(self, cluster: str, over_before_s: float, most: int) -> int:
        """Forget points and watches of jobs over since before a moment and never decided on; return how many."""
        with self._writing() as connection:
            return upkeep.prune(connection, cluster, over_before_s, most)

    def intents_by_state(self) -> Mapping[State, int]:
        """Return how many intents are in each state; states without any are left out."""
        with self._reading() as source:
            return reading.intents_by_state(source)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with translated(self._url), self._engines.write.begin() as connection:
            require_version(connection, self._url)
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translated(self._url), self._engines.read.begin() as connection:
            require_version(connection, self._url)
            yield connection
