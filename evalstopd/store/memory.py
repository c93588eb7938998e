"""The store in plain dictionaries: the semantics of the SQL store, for the simulator and for tests."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import RLock

from evalstopd.core import chain
from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn, Decision
from evalstopd.core.chain import GENESIS, Appended, Batch, Entry, Head, Held, Kind, Link
from evalstopd.core.credit import Credit
from evalstopd.core.estimates import History, Kin, Tally
from evalstopd.core.intent import Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey, Life, Point, Rung
from evalstopd.core.preempt import Preemption
from evalstopd.core.registry import PENDING
from evalstopd.core.shift import Shift
from evalstopd.core.watch import Lived, Pin, PinState, Remark, Watch, lived
from evalstopd.ports import Book, Changes, Lease, Pulse, Span
from evalstopd.store import order, turns


class MemoryStore:
    """Implements Store, Archive, Accounts and Chain. Threads may share it; nothing outlives the process.

    `record` raises Rejected, and writes nothing, where the SQL store does.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._pulses: dict[str, Pulse] = {}
        self._leases = turns.MemoryLeases()
        self._histories: dict[str, History] = {}
        self._watches: dict[JobKey, Watch] = {}
        self._live: dict[str, dict[JobKey, Watch]] = defaultdict(dict)
        self._points: dict[JobKey, dict[tuple[int, int, int, str, str, str, str], Point]] = defaultdict(dict)
        self._batch_of: dict[JobKey, dict[tuple[int, int, int, str, str, str, str], int]] = defaultdict(dict)
        self._pins: dict[JobKey, dict[int, Pin]] = defaultdict(dict)
        self._named: dict[str, JobKey] = {}
        self._bound: dict[int, Binding] = {}
        self._turned: dict[int, BreakerTurn] = {}
        self._intents: dict[str, Intent] = {}
        self._intents_of: dict[JobKey, set[str]] = defaultdict(set)
        self._open: dict[str, set[str]] = defaultdict(set)
        self._closed: dict[str, set[str]] = defaultdict(set)
        self._events: dict[str, dict[int, IntentEvent]] = defaultdict(dict)
        self._would_be: dict[JobKey, dict[Life, WouldBeStop]] = defaultdict(dict)
        self._holders: dict[str, Binding] = {}
        self._remarks: dict[str, list[tuple[int, Remark]]] = defaultdict(list)
        self._numbered: dict[int, Remark] = {}
        self._lives: dict[JobKey, dict[Life, Lived]] = defaultdict(dict)
        self._booked: dict[str, WouldBeStop] = {}
        self._links: list[Link] = []
        self._breakers: dict[str, dict[str, BreakerTurn]] = defaultdict(dict)
        self._credits: dict[str, Credit] = {}
        self._preemptions: dict[tuple[JobKey, Life], Preemption] = {}
        self._shifts: dict[JobKey, Shift] = {}

    def record(self, changes: Changes) -> None:
        """Write all changes, or none."""
        with self._lock:
            self._check(changes)
            lives = self._write_watches(changes.watches)
            batches = self._write_points(changes.points)
            for pin in changes.pins:
                self._pins[pin.key][pin.step] = pin
            self._named |= {key.text: key for key in self._keys(changes)}
            for binding in changes.bindings:
                self._holders[binding.run_id] = binding
            for turn in changes.breakers:
                self._breakers[turn.cluster][turn.scope] = turn
            self._preemptions |= {(each.key, each.life): each for each in changes.preemptions}
            self._write_shifts(changes)
            appended = replace(self._fresh(changes), batches=batches, lives=lives, preemptions=changes.preemptions)
            for intent in changes.intents:
                self._write_intent(intent)
            self._append(appended)

    def record_as(self, name: str, epoch: int, changes: Changes) -> None:
        """Write all changes, or none and raise Deposed where the lease is of another epoch."""
        with self._lock:
            turns.require_epoch(self._leases.kept.get(name), epoch)
            self.record(changes)

    def take(self, name: str, holder: str, for_s: float) -> Lease:
        """Take the lease if it is free, over or the holder's; return it as it is then."""
        with self._lock:
            return self._leases.take(name, holder, for_s)

    def resign(self, name: str, holder: str) -> None:
        """End the holder's lease at once; another's stays."""
        with self._lock:
            self._leases.resign(name, holder)

    def leader(self, name: str) -> Lease | None:
        """Return the lease as it is, over or not; None if nobody ever had it."""
        with self._lock:
            return self._leases.leader(name)

    def claim(self, name: str, epoch: int, cluster: str) -> None:
        """Note which cluster the lease leads. Raises Deposed where another that lasts leads it."""
        with self._lock:
            self._leases.claim(name, epoch, cluster)

    def leading(self, cluster: str) -> tuple[str, ...]:
        """Return the names of the leases that lead a cluster now."""
        with self._lock:
            return self._leases.leading(cluster)

    def book(self, cluster: str) -> Book:
        """Return what is open on a cluster."""
        with self._lock:
            live = self._live.get(cluster, {})
            pins = (pin for key in live for pin in self._pins.get(key, {}).values() if pin.state != PinState.DROPPED)
            return Book(
                watches=order.in_key_order(live.values()),
                pins=order.in_step_order(pins),
                intents=order.oldest_intents(self._to_tend(cluster)),
                triggered=self._triggered(live),
                booked=frozenset(key for key, each in live.items() if each.life in self._would_be.get(key, {})),
                said=self._said(live),
                breakers=order.in_scope_order(self._breakers.get(cluster, {}).values()),
                shifts=order.in_job_order(each for each in self._shifts.values() if each.key.cluster == cluster),
            )

    def decisions(self, cluster: str, since_s: float) -> tuple[Decision, ...]:
        """Return the stops that were decided, would have been, or were acted on since then; the oldest first."""
        with self._lock:
            intents = [each for each in self._intents.values() if max(each.created_s, each.acted_s or 0.0) >= since_s]
            stops = [each for lives in self._would_be.values() for each in lives.values() if each.at_s >= since_s]
            found = [
                replace(self._decision(each.key, each.gpus, each.created_s, each.acted_s), rung=each.rung)
                for each in intents
            ]
            found += [
                replace(self._decision(each.key, 0, each.at_s), wished=each.wished, rung=Rung.OBSERVE) for each in stops
            ]
            return order.oldest_decisions(each for each in found if each.key.cluster == cluster)

    def _decision(self, key: JobKey, gpus: int, at_s: float, acted_s: float | None = None) -> Decision:
        watch = self._watches.get(key)
        return Decision(key, watch.account if watch is not None else "", gpus, at_s, acted_s)

    def holders(self, run_ids: Sequence[str]) -> Mapping[str, Binding]:
        """Return each of these runs' last binding, to ended jobs too; runs never bound are left out."""
        with self._lock:
            return {run_id: self._holders[run_id] for run_id in run_ids if run_id in self._holders}

    def points(self, keys: Sequence[JobKey]) -> Mapping[JobKey, tuple[Point, ...]]:
        """Return the stored points of these jobs, over all their lives and runs; an empty tuple for those without."""
        with self._lock:
            return {key: order.in_point_order(self._points.get(key, {}).values()) for key in keys}

    def preemptions(self, cluster: str, since_s: float) -> tuple[Preemption, ...]:
        """Return the preemptions asked for since then; the oldest first."""
        with self._lock:
            found = [each for each in self._preemptions.values() if each.key.cluster == cluster]
            return order.oldest_preemptions(each for each in found if each.at_s >= since_s)

    def stops_of(self, cluster: str, job_ids: Sequence[str]) -> tuple[Intent, ...]:
        """Return the stops done to jobs of these ids: held, confirmed or undone; the one decided last comes first."""
        with self._lock:
            wanted = [each for each in self._intents.values() if each.state in order.STOPPED]
            return order.newest_intents(i for i in wanted if i.key.cluster == cluster and i.key.job_id in job_ids)

    def find(self, job_id: str) -> tuple[Watch, ...]:
        """Return the watched jobs that have had this id; the one first seen last comes first."""
        with self._lock:
            return order.newest_watches(watch for key, watch in self._watches.items() if key.job_id == job_id)

    def recent(self, limit: int) -> tuple[Watch, ...]:
        """Return the watched jobs that were first seen last, the latest first."""
        with self._lock:
            return order.newest_watches(self._watches.values())[:limit]

    def watched_since(self, first_s: float) -> tuple[Watch, ...]:
        """Return the watched jobs first seen at a moment or later, the latest first."""
        with self._lock:
            return order.newest_watches(watch for watch in self._watches.values() if watch.first_s >= first_s)

    def intents_of(self, keys: Sequence[JobKey]) -> tuple[Intent, ...]:
        """Return the intents of these jobs, the latest first."""
        with self._lock:
            ids = {each for key in keys for each in self._intents_of.get(key, ())}
            return order.newest_intents(self._intents[each] for each in ids)

    def events_of(self, intent_ids: Sequence[str]) -> tuple[IntentEvent, ...]:
        """Return the events of these intents, intent by intent as asked for, each intent's in order."""
        with self._lock:
            found = [each for intent_id in set(intent_ids) for each in self._events.get(intent_id, {}).values()]
            return order.in_event_order(found, intent_ids)

    def pins_of(self, keys: Sequence[JobKey]) -> tuple[Pin, ...]:
        """Return the pins of these jobs; the one wanted last comes first."""
        with self._lock:
            return order.newest_pins(pin for key in set(keys) for pin in self._pins.get(key, {}).values())

    def would_be_of(self, keys: Sequence[JobKey]) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops of these jobs, the latest first."""
        with self._lock:
            return order.newest_would_be(stop for key in set(keys) for stop in self._would_be.get(key, {}).values())

    def credits_of(self, keys: Sequence[JobKey]) -> tuple[Credit, ...]:
        """Return what was credited for undone stops of these jobs, the latest first."""
        with self._lock:
            return order.newest_credits(each for each in self._credits.values() if each.key in keys)

    def remarks_of(self, subjects: Sequence[str]) -> tuple[Remark, ...]:
        """Return what was remarked on these subjects, the latest first."""
        with self._lock:
            found = [each for subject in set(subjects) for each in self._remarks.get(subject, ())]
            return order.newest_remarks(remark for _, remark in sorted(found, key=lambda each: each[0]))

    def intents_within(self, span: Span) -> tuple[Intent, ...]:
        """Return the intents decided within a span, the oldest first."""
        with self._lock:
            return order.oldest_intents(each for each in self._intents.values() if each.created_s in span)

    def would_be_within(self, span: Span) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops booked within a span, the oldest first."""
        with self._lock:
            return order.oldest_would_be(each for each in self._booked.values() if each.at_s in span)

    def remarks_within(self, span: Span) -> tuple[Remark, ...]:
        """Return the remarks made within a span, in the order they were written."""
        with self._lock:
            return tuple(each for each in self._numbered.values() if each.at_s in span)

    def watches_of(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Watch]:
        """Return the watches of these jobs; jobs never watched are left out."""
        with self._lock:
            return {key: self._watches[key] for key in keys if key in self._watches}

    def lives_of(self, keys: Sequence[JobKey]) -> tuple[Lived, ...]:
        """Return all lives of these jobs, job by job in their order."""
        with self._lock:
            return order.in_life_order(each for key in set(keys) for each in self._lives.get(key, {}).values())

    def head(self) -> Head | None:
        """Return where the chain ends."""
        with self._lock:
            return Head(len(self._links), self._links[-1].hash) if self._links else None

    def held(self, after: int, most: int) -> tuple[Held, ...]:
        """Return the links after a number, in order, each with what its row is now."""
        with self._lock:
            found = [(link, self._sealed(link)) for link in self._links[after : after + most]]
            return tuple(Held(link, entry.digest if entry is not None else None) for link, entry in found)

    def unsealed(self, most: int) -> tuple[tuple[str, str], ...]:
        """Return no row: nobody but `record` writes here."""
        del most
        return ()

    def history(self, cluster: str) -> History | None:
        """Return what is known of a cluster's jobs; None where nothing was ever read."""
        with self._lock:
            held = self._histories.get(cluster)
            return None if held is None else held.copy()

    def history_read_s(self, cluster: str) -> float | None:
        """Return up to when accounting has been read."""
        with self._lock:
            held = self._histories.get(cluster)
            return None if held is None else held.read_s

    def note_history(
        self, cluster: str, since_s: float | None, read_s: float, changed: Mapping[Kin, Tally], gone: Collection[Kin]
    ) -> None:
        """Write tallies and how far was read. Raises Rejected where that is another moment than `since_s`."""
        with self._lock:
            order.check_read(cluster, since_s, self.history_read_s(cluster))
            held = self._histories.setdefault(cluster, History())
            held.forget(gone)
            held.tallies |= {kin: tally.copy() for kin, tally in changed.items()}
            held.read_until(read_s)

    def note_pulse(self, pulse: Pulse) -> None:
        """Keep a daemon's sign of life in the place of its last one; forget those unheard of for a week."""
        with self._lock:
            heard = {name: each for name, each in self._pulses.items() if each.at_s >= pulse.at_s - order.UNHEARD_S}
            self._pulses = {**heard, pulse.name: pulse}

    def pulses(self) -> tuple[Pulse, ...]:
        """Return the last sign of life of each daemon, by name."""
        with self._lock:
            return tuple(self._pulses[name] for name in sorted(self._pulses))

    def old_pins(self, cluster: str, over_before_s: float, most: int) -> tuple[Pin, ...]:
        """Return pins of jobs over since before a moment that no stop was done to, the oldest first."""
        with self._lock:
            jobs = [each.key for each in self._over(cluster, over_before_s) if not self._acted_on(each.key)]
            pins = (pin for key in jobs for _, pin in sorted(self._pins.get(key, {}).items()))
            return tuple(pin for pin in pins if pin.state in order.ON_DISK)[:most]

    def prune(self, cluster: str, over_before_s: float, most: int) -> int:
        """Forget points and watches of jobs over since before a moment and never decided on; return how many."""
        with self._lock:
            jobs = [each.key for each in self._over(cluster, over_before_s) if self._is_undecided(each.key)][:most]
            for key in jobs:
                for kind in (self._points, self._batch_of, self._pins, self._watches, self._lives):
                    kind.pop(key, None)
            self._append(Appended(forgotten=[key.text for key in jobs]))
            return len(jobs)

    def _over(self, cluster: str, before_s: float) -> list[Watch]:
        found = [each for key, each in self._watches.items() if key.cluster == cluster and each.ending is not None]
        old = [each for each in found if order.gone_s(each) < before_s]
        return sorted(old, key=lambda each: (order.gone_s(each), each.key.text))

    def _acted_on(self, key: JobKey) -> bool:
        own = [self._intents[each] for each in self._intents_of.get(key, ())]
        return any(each.state not in order.GIVEN_UP or each.acted_s is not None or each.cancel_tries for each in own)

    def _is_undecided(self, key: JobKey) -> bool:
        held = any(pin.state in order.ON_DISK for pin in self._pins.get(key, {}).values())
        return not (held or self._intents_of.get(key) or self._would_be.get(key))

    def intents_by_state(self) -> Mapping[State, int]:
        """Return how many intents are in each state; states without any are left out."""
        with self._lock:
            return Counter(each.state for each in self._intents.values())

    def breakers(self) -> tuple[BreakerTurn, ...]:
        """Return the last turn of each breaker, by cluster and scope."""
        with self._lock:
            return order.in_scope_order(turn for turns in self._breakers.values() for turn in turns.values())

    def _check(self, changes: Changes) -> None:
        """Refuse all before anything is written."""
        states: dict[str, State] = {}
        for intent in changes.intents:
            stored = self._intents.get(intent.id)
            order.check_move(intent, states.get(intent.id, stored.state if stored else None))
            states[intent.id] = intent.state
        fresh: dict[tuple[str, int], IntentEvent] = {}
        for event in changes.events:
            name = (event.intent_id, event.seq)
            order.check_intent_known(event, known=event.intent_id in self._intents or event.intent_id in states)
            order.check_event(event, fresh.get(name, self._events.get(event.intent_id, {}).get(event.seq)))
            fresh[name] = event

    @staticmethod
    def _keys(changes: Changes) -> set[JobKey]:
        """Return the keys of what bears a job's name in the chain."""
        named = {pin.key for pin in changes.pins} | {watch.key for watch in changes.watches}
        return named | {each.key for each in changes.preemptions} | {key for key, _ in changes.points}

    def _write_watches(self, watches: Sequence[Watch]) -> list[Lived]:
        """Keep watches; return the lives that are new, or not as they were."""
        changed: dict[tuple[JobKey, Life], Lived] = {}
        for watch in watches:
            now = lived(watch)
            if self._lives[watch.key].get(watch.life) != now:
                changed[watch.key, watch.life] = now
            self._watches[watch.key] = watch
            self._lives[watch.key][watch.life] = now
            if watch.ending is None:
                self._live[watch.key.cluster][watch.key] = watch
            else:
                self._live[watch.key.cluster].pop(watch.key, None)
        return list(changed.values())

    def _write_shifts(self, changes: Changes) -> None:
        for key in changes.unshifted:
            self._shifts.pop(key, None)
        for shift in changes.shifts:
            self._shifts[shift.key] = shift

    def _write_intent(self, intent: Intent) -> None:
        stored = self._intents.get(intent.id, intent)
        self._intents[intent.id] = replace(intent, evidence=stored.evidence, created_s=stored.created_s)
        self._intents_of[intent.key].add(intent.id)
        self._open[intent.key.cluster].discard(intent.id)
        (self._closed if intent.closed else self._open)[intent.key.cluster].add(intent.id)

    def _fresh(self, changes: Changes) -> Appended:
        """Return what is not in the book yet, and the intents, which are sealed anew at each writing."""
        events = {(of, seq) for of in {each.intent_id for each in changes.events} for seq in self._events.get(of, ())}
        booked = {
            (key, life) for key in {each.key for each in changes.would_be} for life in self._would_be.get(key, ())
        }
        return Appended(
            decided=order.unknown(changes.intents, lambda each: each.id, self._intents),
            intents=changes.intents,
            events=order.unknown(changes.events, lambda each: (each.intent_id, each.seq), events),
            credits=order.unknown(changes.credits, lambda each: each.intent_id, self._credits),
            would_be=order.unknown(changes.would_be, lambda each: (each.key, each.life), booked),
            remarks=changes.remarks,
            bindings=changes.bindings,
            breakers=changes.breakers,
            pins=changes.pins,
        )

    def _write_points(self, brought: Sequence[tuple[JobKey, Point]]) -> list[Batch]:
        """Keep points in a batch a job; return the batches that are new, or changed by a standard error that came."""
        touched: dict[tuple[JobKey, int], None] = {}
        for key, point in brought:
            name = order.point_identity(point)
            held = self._points[key].get(name)
            if held is None:
                self._batch_of[key][name] = len(self._links)
            if held is None or (held.stderr is None and point.stderr is not None):
                self._points[key][name] = point if held is None else replace(held, stderr=point.stderr)
                touched[(key, self._batch_of[key][name])] = None
        return [self._batch(key, number) for key, number in touched]

    def _batch(self, key: JobKey, number: int) -> Batch:
        names = (name for name, of in self._batch_of.get(key, {}).items() if of == number)
        return Batch(key.text, number, [self._points[key][name] for name in names])

    def _append(self, appended: Appended) -> None:
        length, before = len(self._links), self._links[-1].hash if self._links else GENESIS
        for event in appended.events:
            self._events[event.intent_id][event.seq] = event
        for credit in appended.credits:
            self._credits[credit.intent_id] = credit
        for stop in appended.would_be:
            self._would_be[stop.key][stop.life] = stop
            self._booked[chain.would_be_name(stop)] = stop
        numbers = appended.numbers(length)
        for number, remark in zip(numbers[Kind.REMARK], appended.remarks, strict=True):
            self._numbered[number] = remark
            self._remarks[remark.subject].append((number, remark))
        self._bound |= dict(zip(numbers[Kind.BINDING], appended.bindings, strict=True))
        self._turned |= dict(zip(numbers[Kind.BREAKER], appended.breakers, strict=True))
        self._links += appended.links(length, before)

    def _sealed(self, link: Link) -> Entry | None:
        """Return what seals a link's row as it is now; None where there is no such row any more."""
        of, _, number = link.ref.rpartition(":")
        look: Mapping[str, Callable[[], Entry | None]] = {
            Kind.DECISION: lambda: chain.decision(self._intents[link.ref]),
            Kind.INTENT: lambda: chain.standing(self._intents[link.ref]),
            Kind.EVENT: lambda: chain.event(self._events[of][int(number)]),
            Kind.CREDIT: lambda: chain.credit(self._credits[link.ref]),
            Kind.WOULD_BE: lambda: chain.would_be(self._booked[link.ref]),
            Kind.REMARK: lambda: chain.remark(link.seq, self._numbered[link.seq]),
            Kind.BINDING: lambda: chain.binding(link.seq, self._bound[link.seq]),
            Kind.BREAKER: lambda: chain.breaker(link.seq, self._turned[link.seq]),
            Kind.PIN: lambda: self._sealed_pin(self._named[of], int(number)),
            Kind.POINTS: lambda: self._sealed_batch(self._named[of], int(number)),
            Kind.LIFE: lambda: self._sealed_life(link.ref),
            Kind.PREEMPTION: lambda: chain.preemption(self._preemptions[self._life_named(link.ref)]),
            Kind.FORGOTTEN: lambda: chain.forgotten(link.ref),
        }
        return look[link.kind]()

    def _life_named(self, ref: str) -> tuple[JobKey, Life]:
        job, restarts, submitted_s = ref.rsplit(":", 2)
        return self._named[job], Life(int(restarts), int(submitted_s))

    def _sealed_life(self, ref: str) -> Entry | None:
        key, life = self._life_named(ref)
        found = self._lives.get(key, {}).get(life)
        return chain.life(found) if found is not None else None

    def _sealed_pin(self, key: JobKey, step: int) -> Entry | None:
        pin = self._pins.get(key, {}).get(step)
        return chain.pin(pin) if pin is not None else None

    def _sealed_batch(self, key: JobKey, number: int) -> Entry | None:
        found = self._batch(key, number)
        return chain.batch(found) if found.points else None

    def _to_tend(self, cluster: str) -> list[Intent]:
        closed = [self._intents[each] for each in self._closed.get(cluster, ())]
        late = heapq.nlargest(order.RECENT_CLOSED, closed, key=lambda each: (each.changed_s, each.id))
        unregistered = [each.id for each in closed if each.state is State.CONFIRMED and each.model in PENDING]
        unnoted = [each.id for each in late if each.telling or (each.state is State.CONFIRMED and not each.handed_to)]
        wanted = dict.fromkeys([*unnoted, *unregistered])
        return [self._intents[each] for each in wanted] + [self._intents[each] for each in self._open.get(cluster, ())]

    def _triggered(self, live: Mapping[JobKey, Watch]) -> dict[JobKey, int]:
        steps: dict[JobKey, int] = {}
        for key, watch in live.items():
            own = [self._intents[each] for each in self._intents_of.get(key, ())]
            found = [each.evidence.trigger_step for each in own if each.life == watch.life]
            if found:
                steps[key] = max(found)
        return steps

    def _said(self, live: Mapping[JobKey, Watch]) -> frozenset[tuple[str, str]]:
        subjects = (order.SITE, *(key.text for key in live))
        return frozenset((subject, each.code) for subject in subjects for _, each in self._remarks.get(subject, ()))
