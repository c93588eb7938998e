"""The waiting jobs in the policy's order: look what became of the last changes, record new ones, ask for them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.lineup import (
    Estimate,
    Known,
    Line,
    PriorityRules,
    Waiting,
    by_lever,
    is_of,
    limits,
    line_up,
    unit_of,
    waiting_of,
)
from evalstopd.core.model import Job, Phase, Snapshot
from evalstopd.core.priorities import NICE_LIMIT
from evalstopd.core.rules import Rules
from evalstopd.core.shift import Lever, Shift, ShiftState, asked_for, observed, steer, taken_back
from evalstopd.core.watch import Remark
from evalstopd.errors import Rejected, Unavailable
from evalstopd.loop.knowledge import Knowledge
from evalstopd.loop.report import Tally
from evalstopd.ports import Book, Changes, Ports

SITE = "site"
DENIED = "priorities-denied"
LEFT = "priority-left-alone"
BACK = "moved back"
_DONE_WITHOUT = ("no order is kept among waiting jobs", "nothing is given back to waiting jobs")
NOTHING: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the moved jobs: the shifts that stand, the jobs whose shift is over, who is left alone anew."""

    stand: tuple[Shift, ...]
    changed: tuple[Shift, ...]
    over: tuple[Shift, ...]

    def changes(self, now_s: float) -> Changes:
        """Return what is to be written."""
        left = [each for each in self.changed if each.state is ShiftState.LEFT]
        return Changes(
            shifts=self.changed,
            unshifted=tuple(each.key for each in self.over),
            remarks=tuple(Remark(each.key.text, LEFT, f"left alone: {each.why}", now_s) for each in left),
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """The lines as they stand and as they are wanted."""

    waiting: tuple[Waiting, ...]
    lines: tuple[Line, ...]
    known: Known


@dataclass(frozen=True, slots=True)
class Ordering:
    """Keeps the lines of one cluster in order; `asked` None takes back whatever was changed."""

    ports: Ports
    rules: Rules
    asked: PriorityRules | None
    estimate: Estimate = limits

    @property
    def knowledge(self) -> Knowledge:
        """Return what tells of waiting jobs beside the queue."""
        return Knowledge(self.ports, self.estimate)

    def serve(self, snapshot: Snapshot, book: Book, tally: Tally) -> None:
        """Do what one pass does. Trouble with Slurm costs the order, never the pass."""
        if self.asked is None and not book.shifts:
            return
        stand = self._settle(snapshot, book, tally).stand
        if self.ports.kill_switch.engaged() or self.ports.should_stop():
            return
        if self.asked is None:
            self._take_back(stand, snapshot, tally)
        else:
            self._keep(snapshot, replace(book, shifts=stand), self.asked, tally)

    def foresee(self, snapshot: Snapshot, book: Book, tally: Tally) -> None:
        """Count what a pass would move now; nothing is recorded or asked for."""
        if (self.asked is None and not book.shifts) or self.ports.kill_switch.engaged():
            return
        stand = settle(snapshot, book.shifts, self.asked).stand
        if self.asked is None:
            tally.add("would be moved back", len([each for each in stand if _owed(each, snapshot)]))
            return
        tally.add("would be moved back", len(self._strays(snapshot, stand, self.asked)))
        if is_due(stand, self.asked, snapshot.now_s):
            picture = self.picture(snapshot, replace(book, shifts=stand), self.asked, tally)
            tally.add("would be moved", len(moves(picture, self.asked, snapshot.now_s)))

    def _keep(self, snapshot: Snapshot, book: Book, asked: PriorityRules, tally: Tally) -> None:
        """Give back at once what is with jobs that left the line, and put the line in order where that is due."""
        due = is_due(book.shifts, asked, snapshot.now_s)
        back = self._strays(snapshot, book.shifts, asked)
        if back and not self._move(back, tally, book.said, BACK):
            return
        if due:
            picture = self.picture(snapshot, book, asked, tally)
            self._move(moves(picture, asked, snapshot.now_s), tally, book.said)

    def _strays(self, snapshot: Snapshot, stand: Sequence[Shift], asked: PriorityRules) -> list[Shift]:
        """Return what is to be written down before they are given back; no later ordering waits for it."""
        waiting = self._waiting(snapshot, stand, asked)
        return [taken_back(each, each.asked_s) for each in strays(waiting, stand, snapshot.jobs)]

    def restore(self, tally: Tally) -> int:
        """Take back all that was changed, and look whether it is; return how many jobs could not be seen so.

        Raises Unavailable, Rejected or Deposed. With the kill switch set nothing is done.
        """
        if self.ports.kill_switch.engaged():
            raise Rejected("the kill switch is set: no Nice or Priority is taken back")
        back = replace(self, asked=None)
        snapshot, stand = back._looked(tally)
        if back._take_back(stand, snapshot, tally):
            snapshot, stand = back._looked(tally)
        return len([each for each in stand if each.away and waits(each, snapshot.jobs)])

    def _looked(self, tally: Tally) -> tuple[Snapshot, Sequence[Shift]]:
        queue = self.ports.cluster.queue()
        snapshot = Snapshot(queue.cluster, self.ports.clock.now_s(), queue.jobs)
        return snapshot, self._settle(snapshot, self.ports.store.book(queue.cluster), tally).stand

    def picture(self, snapshot: Snapshot, book: Book, asked: PriorityRules, tally: Tally) -> Picture:
        """Return the lines, and what would put them in order. Changes nothing."""
        waiting = self._waiting(snapshot, book.shifts, asked)
        known = self.knowledge.of(waiting, book, asked, tally)
        return Picture(tuple(waiting), line_up(waiting, snapshot.jobs, known, asked, snapshot.now_s), known)

    def _waiting(self, snapshot: Snapshot, shifts: Sequence[Shift], asked: PriorityRules) -> list[Waiting]:
        return by_lever(waiting_of(snapshot.jobs, shifts, self.rules, asked, snapshot.now_s), asked.lever)

    def _settle(self, snapshot: Snapshot, book: Book, tally: Tally) -> Settled:
        settled = settle(snapshot, book.shifts, self.asked)
        changes = settled.changes(snapshot.now_s)
        for remark in changes.remarks:
            tally.trouble(f"job {remark.subject.split(':')[1]} is {remark.text}")
        if changes:
            self.ports.store.record(changes)
        return settled

    def _take_back(self, stand: Sequence[Shift], snapshot: Snapshot, tally: Tally) -> bool:
        """Ask for what was found; tell whether there was anything to ask for."""
        away = [each for each in stand if _owed(each, snapshot)]
        return self._move([taken_back(each, snapshot.now_s) for each in away], tally, NOTHING, BACK)

    def _move(
        self, shifts: Sequence[Shift], tally: Tally, said: frozenset[tuple[str, str]], what: str = "moved"
    ) -> bool:
        """Record, then ask."""
        if not shifts:
            return False
        self.ports.store.record(Changes(shifts=tuple(shifts)))
        try:
            self.ports.cluster.steer([steer(each) for each in shifts])
        except Rejected as error:
            tally.trouble(f"{_DONE_WITHOUT[what == BACK]}, as it takes Slurm's Operator level: {error}")
            self._refused(shifts, str(error), said)
            return False
        except Unavailable as error:
            tally.trouble(f"priorities: {error}")
            return False
        tally.add(what, len(shifts))
        return True

    def _refused(self, shifts: Sequence[Shift], why: str, said: frozenset[tuple[str, str]]) -> None:
        """Leave no half-done order: ask for what each job had before, and write down that this is what is wanted."""
        back = [replace(each, asked=each.before, before=each.asked) for each in shifts]
        remark = Remark(SITE, DENIED, f"priorities are not changed: {why}", shifts[0].asked_s)
        self.ports.store.record(Changes(shifts=tuple(back), remarks=() if (SITE, DENIED) in said else (remark,)))
        try:
            self.ports.cluster.steer([steer(each) for each in back])
        except (Rejected, Unavailable):
            return


def settle(snapshot: Snapshot, shifts: Sequence[Shift], asked: PriorityRules | None) -> Settled:
    """Return what a look at the queue tells of the moved jobs. Running ones stay as they are: they may wait again."""
    here: dict[str, list[Job]] = defaultdict(list)
    for job in snapshot.jobs:
        here[unit_of(job)].append(job)
    stand, changed, over = [], [], []
    for shift in shifts:
        own = [job for job in here.get(shift.key.job_id, ()) if is_of(shift, job) and job.phase is not Phase.ENDED]
        seen = _seen(shift, own, asked)
        if not own or _is_over(seen, asked, snapshot.now_s):
            over.append(seen)
            continue
        stand.append(seen)
        if seen != shift:
            changed.append(seen)
    return Settled(tuple(stand), tuple(changed), tuple(over))


def _seen(shift: Shift, own: Sequence[Job], asked: PriorityRules | None) -> Shift:
    waiting = [job for job in own if job.phase is Phase.PENDING]
    told = waiting and not (shift.lever is Lever.PRIORITY and waiting[0].held)
    if not told or len({job.nice for job in waiting}) > 1:
        return shift
    # What is taken back is asked for as often as it takes, whatever was tried before.
    patience = asked.reassert if asked is not None and shift.asked != shift.home else shift.tries + 1
    return observed(shift, waiting[0].priority, waiting[0].nice, patience)


def _is_over(shift: Shift, asked: PriorityRules | None, now_s: float) -> bool:
    """Tell whether nothing of a shift needs to be remembered: it is taken back, and what it cost in patience is nil."""
    rested = asked is None or now_s - shift.asked_s >= asked.interval_s
    patient = asked is None or shift.tries == 0
    return rested and patient and shift.state is ShiftState.SET and not shift.away


def is_due(shifts: Sequence[Shift], asked: PriorityRules, now_s: float) -> bool:
    """Tell whether the last changes are long enough ago."""
    return now_s - max((each.asked_s for each in shifts), default=float("-inf")) >= asked.interval_s


def moves(picture: Picture, asked: PriorityRules, now_s: float) -> list[Shift]:
    """Return what is to be written down and asked for, in order; no Nice beyond what Slurm takes."""
    here: Mapping[str, Waiting] = {each.name: each for each in picture.waiting}
    found = []
    for line in picture.lines:
        for change in line.changes:
            one = here[change.job.name]
            found.append(asked_for(change, one.key, one.job.nice, asked.lever, now_s, one.shift))
    return [each for each in found if each.lever is Lever.PRIORITY or abs(each.asked) <= NICE_LIMIT]


def strays(waiting: Sequence[Waiting], shifts: Sequence[Shift], jobs: Sequence[Job]) -> list[Shift]:
    """Return the moved jobs that wait but stand in no line any more, by other settings or for reasons of their own."""
    here = {each.name for each in waiting if not each.apart}
    return [each for each in shifts if each.away and each.key.job_id not in here and waits(each, jobs)]


def _owed(shift: Shift, snapshot: Snapshot) -> bool:
    return shift.away and can_be_given_back(shift, snapshot.jobs)


def can_be_given_back(shift: Shift, jobs: Sequence[Job]) -> bool:
    """Tell whether a moved job waits, or runs and was not asked to have its Nice back yet.

    Slurm 22.05 sets the Nice of a running job, where it means nothing, others may not: so it is asked for once.
    """
    own = [job for job in jobs if unit_of(job) == shift.key.job_id and is_of(shift, job)]
    runs = any(job.phase in (Phase.RUNNING, Phase.SUSPENDED) for job in own)
    return waits(shift, own) or (runs and shift.lever is Lever.NICE and shift.asked != shift.home)


def waits(shift: Shift, jobs: Sequence[Job]) -> bool:
    """Tell whether a moved job waits now, with what we set.

    A hold is a Priority of its owner's: it has taken the place of ours, and to give that back would end the hold.
    """
    own = (job for job in jobs if unit_of(job) == shift.key.job_id and is_of(shift, job))
    return any(job.phase is Phase.PENDING and not (shift.lever is Lever.PRIORITY and job.held) for job in own)
