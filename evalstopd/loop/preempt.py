"""Running jobs that yield to the first waiting one: look at earlier requests, decide, look again, record, ask."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.intent import Intent
from evalstopd.core.lineup import Known, PriorityRules, Waiting, view_of, waiting_of, wanted_order
from evalstopd.core.model import Job, JobKey, JobView, Phase
from evalstopd.core.preempt import (
    YIELDED,
    Facts,
    Occupant,
    Preemption,
    PreemptRules,
    PreemptState,
    Room,
    heir_of,
    left_within,
    make_room,
    settled,
    why_apart,
)
from evalstopd.core.watch import Pin, Remark
from evalstopd.core.wishes import parse_comment
from evalstopd.errors import (
    CheckpointFailed,
    CheckpointIncomplete,
    CheckpointMissing,
    NotRequeueable,
    Rejected,
    Unavailable,
)
from evalstopd.loop.knowledge import Knowledge
from evalstopd.loop.lengths import LengthsOf
from evalstopd.loop.scene import Scene
from evalstopd.loop.watched import Seen
from evalstopd.ports import Book, Changes, EndingQuery, Message

MEMORY_S = 30 * 86400.0
"""So far back it counts how often a job has yielded."""
_BROKEN = (CheckpointFailed, CheckpointIncomplete, CheckpointMissing, Rejected, Unavailable)


@dataclass(frozen=True, slots=True)
class Preempting:
    """What one pass may do, once it is done with its stops; `asked` None: nobody yields."""

    scene: Scene
    book: Book
    asked: PreemptRules | None
    lengths: LengthsOf

    def serve(self, intents: Sequence[Intent], *, stopping: bool) -> None:
        """Follow up what was asked for; if nothing is under way, make room for one job.

        `intents` are those of this pass; `stopping` tells whether a stop frees GPUs, which may be enough.
        """
        if self.asked is None:
            return
        since_s = self._now_s - MEMORY_S
        past = self._settle(self.scene.ports.store.preemptions(self._cluster, since_s))
        if self.scene.ports.kill_switch.engaged() or self.scene.ports.should_stop():
            return
        pending = [each for each in past if each.state is PreemptState.ASKED]
        if pending:
            self._ask_again(pending)
        elif not stopping:
            room = self._room(self.asked, past, intents)
            if room is not None:
                self._ask(room)

    @property
    def _now_s(self) -> float:
        return self.scene.seen.snapshot.now_s

    @property
    def _cluster(self) -> str:
        return self.scene.seen.snapshot.cluster

    def _settle(self, past: Sequence[Preemption]) -> list[Preemption]:
        """Write down what became of requests, and return all as they stand."""
        here = {job.job_id: job for job in self.scene.seen.snapshot.jobs}
        now = [
            settled(each, here.get(each.key.job_id), self._now_s) if each.state is PreemptState.ASKED else each
            for each in past
        ]
        changed = tuple(each for each, before in zip(now, past, strict=True) if each != before)
        if changed:
            self.scene.ports.store.record(Changes(preemptions=changed))
        return now

    # --- who yields to whom

    def _room(self, asked: PreemptRules, past: Sequence[Preemption], intents: Sequence[Intent]) -> Room | None:
        most = left_within(past, asked, self._now_s)
        heirs = self._heirs(asked, past) if most else []
        if not heirs:
            return None
        running = self._running(asked, past, intents)
        rooms = (make_room(job, view, running, asked, self._now_s, most) for job, view in heirs)
        return next((room for room in rooms if room is not None), None)

    def _heirs(self, asked: PreemptRules, past: Sequence[Preemption]) -> list[tuple[Job, JobView]]:
        """Return the first waiting job of each partition's ranking, where it is also the one that starts next."""
        jobs, rules = self.scene.seen.snapshot.jobs, PriorityRules(asked.policy)
        waiting = waiting_of(jobs, self.book.shifts, self.scene.rules, rules, self._now_s)
        pending = [job for job in jobs if job.phase is Phase.PENDING]
        ready = [each for each in waiting if not each.apart and each.job.is_single]
        if not any(heir_of([each.job], pending, past) for each in ready):
            return []
        known = Knowledge(self.scene.ports, self._of_waiting).of(waiting, self.book, rules, self.scene.tally)
        return list(self._first(ready, known, rules, pending, past))

    def _first(
        self,
        ready: Sequence[Waiting],
        known: Known,
        rules: PriorityRules,
        pending: Sequence[Job],
        past: Sequence[Preemption],
    ) -> list[tuple[Job, JobView]]:
        lines: dict[str, list[Waiting]] = defaultdict(list)
        for each in ready:
            lines[each.job.partition].append(each)
        found = []
        for _, own in sorted(lines.items()):
            ranked = wanted_order(own, known, rules, self._now_s)
            if heir_of([each.job for each in ranked], pending, past) is not None:
                found.append((ranked[0].job, view_of(ranked[0], known)))
        return found

    def _of_waiting(self, waiting: Sequence[Waiting]) -> Mapping[str, float]:
        found = self.lengths([each.job for each in waiting])
        return {each.name: found[each.job.job_id] for each in waiting if each.job.job_id in found}

    def _running(
        self, asked: PreemptRules, past: Sequence[Preemption], intents: Sequence[Intent]
    ) -> tuple[Occupant, ...]:
        """Return the watched jobs that hold GPUs: nobody else has a checkpoint that is known to be whole."""
        here = [one for one in self.scene.seen.seen.values() if one.job.holds_gpus]
        saved, stopping = self._saved([one.key for one in here]), {each.key for each in intents if not each.closed}
        views = self._views(here)
        found = []
        for one in here:
            own = tuple(each for each in past if each.key == one.key)
            keep, saved_s = one.wishes.keep, saved.get(one.key)
            facts = Facts(one.standing.terms.rung, keep, one.key in stopping, saved_s, own)
            apart = why_apart(one.job, facts, asked, self._now_s)
            found.append(Occupant(one.key, one.job, views[one.key], saved_s or 0.0, apart))
        return tuple(found)

    def _views(self, here: Sequence[Seen]) -> dict[JobKey, JobView]:
        """Return what a policy sees of running jobs: what they attained is counted over all their lives."""
        lengths, before = self.lengths([one.job for one in here]), self._served(here)
        found = {}
        for one in here:
            job = one.job
            ran_s = max(0.0, self._now_s - job.started_s) if job.started_s is not None else 0.0
            attained_s = before.get(one.key, 0.0) + ran_s
            length_s = lengths.get(job.job_id)
            found[one.key] = JobView(job.job_id, one.key.submitted_s, job.gpus, "", length_s, attained_s, running=True)
        return found

    def _served(self, here: Sequence[Seen]) -> dict[JobKey, float]:
        """Return how long requeued jobs ran in earlier lives."""
        queries = {EndingQuery(one.job.job_id, one.job.life): one.key for one in here if one.job.restarts > 0}
        if not queries:
            return {}
        try:
            found = self.scene.ports.cluster.served(list(queries))
        except (Unavailable, Rejected) as error:
            self.scene.tally.trouble(f"preemption, accounting: {error}")
            return {}
        return {queries[query]: ran_s for query, ran_s in found.items()}

    def _saved(self, keys: Sequence[JobKey]) -> dict[JobKey, float]:
        """Return when each job's newest verified checkpoint was evaluated, by our clock or its own, the earlier one.

        What a run holds when it is first read arrives late: there the client's own time tells.
        """
        pins = [pin for pin in self.scene.pins.values() if pin.safe and pin.key in set(keys)]
        points = self.scene.ports.store.points([pin.key for pin in pins]) if pins else {}
        found: dict[JobKey, float] = {}
        for pin in pins:
            stamps = [point.timestamp_ms / 1000 for point in points.get(pin.key, ()) if point.step == pin.step]
            at_s = min([pin.wanted_s, *stamps])
            found[pin.key] = max(at_s, found.get(pin.key, at_s))
        return found

    # --- the act

    def _ask(self, room: Room) -> None:
        """Look at all of them again; record that they are asked for, then ask."""
        asked = [_request(each, room, self.scene.ledger.now_s) for each in room.victims]
        if self._stands(asked) and all(self._verified(each.key) for each in room.victims):
            said = tuple(Remark(each.key.text, YIELDED, _told(each), self.scene.ledger.now_s) for each in asked)
            self._put_back(asked, said)

    def _ask_again(self, asked: Sequence[Preemption]) -> None:
        """Ask anew for what a daemon that ended may not have asked for: the life still runs, so nothing happened."""
        if self._stands(asked):
            self._put_back([replace(each, tries=each.tries + 1) for each in asked], ())
        elif not self._heir_waits(asked):
            gone = tuple(each.ended(PreemptState.VOID, "the waiting job needs no room any more") for each in asked)
            self.scene.ports.store.record(Changes(preemptions=gone))

    def _heir_waits(self, asked: Sequence[Preemption]) -> bool:
        here = {job.job_id: job for job in self.scene.seen.snapshot.jobs}
        heirs = [here.get(each.heir) for each in asked]
        return all(job is not None and job.phase is Phase.PENDING and not job.held for job in heirs)

    def _stands(self, asked: Sequence[Preemption]) -> bool:
        """Tell whether a fresh look still shows all as they were: running lives without a veto, an heir that waits."""
        ids = [*(each.key.job_id for each in asked), *(each.heir for each in asked)]
        try:
            looked = self.scene.ports.cluster.look(list(dict.fromkeys(ids)))
        except (Unavailable, Rejected) as error:
            self.scene.tally.trouble(f"last look: {error}")
            return False
        heirs = [looked.get(each.heir) for each in asked]
        wait = all(job is not None and job.phase is Phase.PENDING and not job.held for job in heirs)
        return wait and all(_runs_on(each, looked.get(each.key.job_id)) for each in asked)

    def _verified(self, key: JobKey) -> bool:
        """Tell whether one of the job's newest pins is whole now; what is wrong with it is said."""
        pins = [pin for pin in self.scene.pins.values() if pin.key == key and pin.safe]
        newest: Pin | None = max(pins, key=lambda pin: pin.wanted_s, default=None)
        place = self.scene.desk.place(newest) if newest is not None else None
        shares = self.scene.desk.shares
        if place is None or not shares.left(place.uid, held=True):
            return False
        try:
            with shares.of(place.uid):
                self.scene.ports.keeper.verify(place)
        except _BROKEN as error:
            self.scene.tally.trouble(f"job {key.job_id} keeps its GPUs, its checkpoint could not be verified: {error}")
            return False
        return True

    def _put_back(self, asked: Sequence[Preemption], said: tuple[Remark, ...]) -> None:
        self.scene.ports.store.record(Changes(preemptions=tuple(asked), remarks=said))
        for each in asked:
            try:
                self.scene.ports.cluster.put_back(each.key.job_id)
            except (NotRequeueable, Rejected) as error:
                self.scene.tally.trouble(f"preemption: {error}")
                self.scene.ports.store.record(Changes(preemptions=(each.ended(PreemptState.REFUSED, str(error)),)))
            except Unavailable as error:
                self.scene.tally.trouble(f"preemption: {error}")
            else:
                self.scene.tally.add(YIELDED)
                if said:
                    self._tell(each)

    def _tell(self, asked: Preemption) -> None:
        ref = f"{asked.key.text}:{asked.life.restarts}:{YIELDED}"
        subject = "your job was requeued and will go on"
        self.scene.ports.notifier.tell(Message(asked.key, asked.user, subject, _told(asked), YIELDED, ref))


def _request(one: Occupant, room: Room, now_s: float) -> Preemption:
    job = one.job
    what = (room.heir.job_id, job.gpus, now_s, one.saved_s, room.reason, job.user)
    return Preemption(one.key, job.life, *what, tries=1)


def _runs_on(asked: Preemption, job: Job | None) -> bool:
    if job is None or job.phase is not Phase.RUNNING or job.life != asked.life or job.uid != asked.key.uid:
        return False
    wishes = parse_comment(job.comment)
    return not wishes.keep and not wishes.faults


def _told(asked: Preemption) -> str:
    """Return why a job yields, in the words that every place uses."""
    return f"requeued, so that job {asked.heir} can start on its {asked.gpus} GPUs: {asked.reason}"
