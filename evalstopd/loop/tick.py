"""One pass of the loop: observe, decide, record, act, confirm; with the sentence that says what was done."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace

from evalstopd.core.caps import WINDOW_S, Decision, trips
from evalstopd.core.lineup import Estimate, PriorityRules, limits
from evalstopd.core.model import JobKey, Rung, Snapshot
from evalstopd.core.plan import Stamp
from evalstopd.core.preempt import PreemptRules
from evalstopd.core.rules import Rules
from evalstopd.core.watch import Pin, PinState
from evalstopd.errors import Deposed, EvalstopError, Rejected, Unavailable
from evalstopd.loop.act import Acts
from evalstopd.loop.doubt import with_doubts
from evalstopd.loop.folds import Folds
from evalstopd.loop.judge import Judgement, decided_now, judge, with_trips
from evalstopd.loop.ledger import Ledger
from evalstopd.loop.lengths import LengthsOf, limits_of
from evalstopd.loop.objections import Objections
from evalstopd.loop.observe import Observation, observe
from evalstopd.loop.pins import PinDesk
from evalstopd.loop.preempt import Preempting
from evalstopd.loop.priorities import Ordering
from evalstopd.loop.report import Tally, TickReport
from evalstopd.loop.scene import Scene
from evalstopd.loop.shares import Shares
from evalstopd.loop.telling import book_admins, book_receipts, count, tell_early
from evalstopd.loop.vanished import Stored, without_vanished
from evalstopd.loop.witness import Witness
from evalstopd.ports import Book, Ports

_LOG_TIME_S = 10.0


@dataclass(frozen=True, slots=True)
class Stance:
    """What stands behind every decision of a loop: the rules, the settings' digest, the version.

    `priorities` None: the order of waiting jobs is Slurm's alone; `preempt` None: no running job yields.
    """

    rules: Rules
    settings_hash: str = ""
    version: str = ""
    priorities: PriorityRules | None = None
    preempt: PreemptRules | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """The control loop over one cluster. It keeps nothing between two passes: the store is its memory.

    But for `folds`, on which nothing but the time of a pass hangs: without them each curve is folded at once.
    """

    ports: Ports
    stance: Stance
    estimate: Estimate = limits
    lengths: LengthsOf = limits_of
    folds: Folds | None = None

    @property
    def ordering(self) -> Ordering:
        """Return what keeps waiting jobs in the policy's order."""
        return Ordering(self.ports, self.stance.rules, self.stance.priorities, self.estimate)

    def tick(self) -> TickReport:
        """Make one pass. Trouble with a port ends the pass or skips a job; it never raises for it."""
        tally = Tally()
        try:
            self._pass(tally)
        except (Unavailable, Rejected, Deposed) as error:
            tally.trouble(str(error))
            return _told(tally, good=False)
        return _told(tally, good=True)

    def foresee(self) -> tuple[TickReport, Judgement]:
        """Observe and decide, but record nothing and do nothing: what `tick` would decide now."""
        tally = Tally()
        now_s, book, seen, stored = self._observe(tally)
        judgement = self._judge(seen, book, stored, now_s, tally)
        self.ordering.foresee(seen.snapshot, book, tally)
        return _told(tally, good=True), judgement

    def close(self) -> None:
        """Send the messages that still wait, for a short while, and record what became of them if the store can."""
        self.ports.notifier.close()
        receipts = self.ports.notifier.receipts()
        with suppress(EvalstopError):
            book_admins(self.ports.store, receipts, self.ports.clock.now_s())
            for cluster in {each.message.key.cluster for each in receipts}:
                book_receipts(self.ports, self.ports.store.book(cluster), receipts, self.ports.clock.now_s())

    def _pass(self, tally: Tally) -> None:
        now_s, book, seen, stored = self._observe(tally)
        judgement = self._judge(seen, book, stored, now_s, tally)
        seen = _without(seen, judgement.postponed)
        decisions = self._decisions(seen, book, judgement, now_s)
        rules = self.stance.rules
        tripped = trips(seen.snapshot.cluster, decisions, book.breakers, rules.caps, now_s, rules.rung)
        changes = with_trips(judgement.changes, tripped)
        if changes:
            self.ports.store.record(changes)
        seen = replace(seen, breakers={**seen.breakers, **{each.scope: each for each in tripped}})
        seen = replace(seen, contradicted=_contradicted(seen, judgement))
        seen = with_doubts(self.ports, seen, judgement.changes.intents, tally)
        # Before the stops: who gets the GPUs that they free is decided by then.
        self.ordering.serve(seen.snapshot, book, tally)
        self._act(seen, book, judgement, decisions, tally)

    def _decisions(self, seen: Observation, book: Book, judgement: Judgement, now_s: float) -> tuple[Decision, ...]:
        """Return what was decided lately, this pass included, where caps and breakers need to know it."""
        new = decided_now(judgement, seen, now_s)
        if not new and not any(each.rung is Rung.ENFORCE and not each.closed for each in book.intents):
            return ()
        since_s = now_s - WINDOW_S - self.stance.rules.caps.hold_s
        return (*self.ports.store.decisions(seen.snapshot.cluster, since_s), *new)

    def _observe(self, tally: Tally) -> tuple[float, Book, Observation, Stored]:
        now_s = self.ports.clock.now_s()
        queue = self.ports.cluster.queue()
        tally.cluster = queue.cluster
        book = self.ports.store.book(queue.cluster)
        receipts = self.ports.notifier.receipts()
        for each in receipts:
            count(tally, each)
        book = book_receipts(self.ports, book, receipts, now_s)
        book_admins(self.ports.store, receipts, now_s)
        snapshot = Snapshot(queue.cluster, now_s, queue.jobs)
        seen = observe(self.ports, snapshot, book, self.stance.rules, tally)
        keys = [*seen.readings, *seen.last]
        stored = self.ports.store.points(keys) if keys else {}
        return now_s, book, without_vanished(seen, book, stored, tally), stored

    def _judge(self, seen: Observation, book: Book, stored: Stored, now_s: float, tally: Tally) -> Judgement:
        stamp = Stamp(now_s, self.stance.settings_hash, self.stance.version)
        return judge(seen, book, stored, stamp, tally, self._witness(tally).log_of, self.folds)

    def _witness(self, tally: Tally) -> Witness:
        return Witness(self.ports, tally, self.ports.clock.now_s() + _LOG_TIME_S)

    def _act(
        self,
        seen: Observation,
        book: Book,
        judgement: Judgement,
        decisions: Sequence[Decision],
        tally: Tally,
    ) -> None:
        watches = {each.key: each for each in (*book.watches, *judgement.changes.watches)}
        intents = (*book.intents, *judgement.changes.intents)
        held = frozenset((each.key, each.evidence.kept_step) for each in intents if not each.closed)
        shares = Shares(self.ports.clock, self.ports.clock.now_s(), seen.rules.tick_s)
        desk = PinDesk(self.ports, seen, watches, seen.rules.candidates, tally, shares, held)
        # What can be lost comes first: a trainer may rotate its best checkpoint away at any moment.
        pins = desk.serve((*book.pins, *judgement.changes.pins))
        tell_early(self.ports, judgement.plan.warned, tally)
        ledger = Ledger(self.ports.store, self.ports.clock)
        objections = Objections(self._witness(tally), shares, judgement.cases)
        scene = Scene(
            self.ports, seen.rules, seen, watches, _by_step(pins), desk, ledger, tally, objections, decisions,
            book.said, back=judgement.back,
        )  # fmt: skip
        stopping = Acts(scene).serve(intents)
        Preempting(scene, book, self.stance.preempt, self.lengths).serve(intents, stopping=stopping)


def _contradicted(seen: Observation, judgement: Judgement) -> Mapping[JobKey, str]:
    """Return of which jobs the owner's log speaks against the stop, after what this pass has heard."""
    new = {each.key: each.evidence.contradicted for each in judgement.plan.intents}
    return {key: why for key, why in {**seen.contradicted, **new}.items() if key not in judgement.plan.borne_out}


def _without(seen: Observation, postponed: AbstractSet[JobKey]) -> Observation:
    """Return what was seen without the readings of jobs that were not judged by them: nothing is done on those."""
    return replace(seen, readings={key: each for key, each in seen.readings.items() if key not in postponed})


def _told(tally: Tally, *, good: bool) -> TickReport:
    cluster = tally.cluster if good else ""
    return TickReport(good, tally.counts, tuple(tally.troubles), cluster=cluster, tracker=tally.tracker)


def _by_step(pins: tuple[Pin, ...]) -> Mapping[tuple[JobKey, int], Pin]:
    return {(pin.key, pin.step): pin for pin in pins if pin.state is not PinState.DROPPED}
