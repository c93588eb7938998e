"""The order of waiting jobs for people: how it stands, how it is wanted, what is left alone; and taking it back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evalstopd.core.lineup import Line, Waiting, is_of, unit_of, wanted_key
from evalstopd.core.model import Job, Phase, Snapshot
from evalstopd.core.priorities import in_place
from evalstopd.core.shift import Shift, ShiftState
from evalstopd.loop.priorities import Ordering, Picture, waits
from evalstopd.loop.report import Tally


@dataclass(frozen=True, slots=True)
class Place:
    """One waiting job, or the waiting tasks of an array: its place in its line now and as wanted, from 1.

    `key` is what the policy ranks it by, the lowest first. `natural` is its priority without us, `next` the one that it
    would get now. `why` tells what was changed, or why it is left alone: such jobs have no wanted place.
    """

    job: str
    user: str
    partition: str
    qos: str
    place: int | None
    wanted: int | None
    key: tuple[float, ...]
    priority: int
    natural: int
    next: int
    nice: int
    nice_found: int
    why: str


def places(ordering: Ordering) -> tuple[Place, ...]:
    """Return every governed waiting job; without a policy those that still have what was set."""
    asked = ordering.asked
    queue, now_s = ordering.ports.cluster.queue(), ordering.ports.clock.now_s()
    book = ordering.ports.store.book(queue.cluster)
    if asked is None:
        return tuple(_standing(each) for each in still_set(book.shifts, queue.jobs))
    picture = ordering.picture(Snapshot(queue.cluster, now_s, queue.jobs), book, asked, Tally())
    in_lines = [row for line in picture.lines for row in _of_line(line, picture, ordering, now_s)]
    return (*in_lines, *(_apart(each) for each in picture.waiting if each.apart))


def still_set(shifts: Iterable[Shift], jobs: Sequence[Job]) -> list[Waiting]:
    """Return the waiting jobs that have what was set, by the record."""
    pending = [job for job in jobs if job.phase is Phase.PENDING]
    away = [each for each in shifts if each.away and waits(each, pending)]
    units = {each.key.job_id: each for each in away}
    own: dict[str, list[Job]] = {}
    for job in pending:
        shift = units.get(unit_of(job))
        if shift is not None and is_of(shift, job):
            own.setdefault(shift.key.job_id, []).append(job)
    return [Waiting(tuple(found), units[name], "") for name, found in own.items()]


def told_still_set(number: int) -> str:
    """Say that the order is Slurm's alone, and how many jobs still have what was set before."""
    alone = "the order of waiting jobs is Slurm's alone"
    if not number:
        return alone
    jobs, have = ("job", "has") if number == 1 else ("jobs", "have")
    back = "the next pass, or `evalstopd priorities restore`, gives it back"
    return f"{alone}, but {number} {jobs} still {have} what was set: {back}"


def told_back(ordering: Ordering) -> str:
    """Take back what was changed, and say what came of it. Raises what `restore` does."""
    tally = Tally()
    left = ordering.restore(tally)
    trouble = f"; trouble: {'; '.join(tally.troubles)}" if tally.troubles else ""
    given = tally.counts["moved back"]
    if left and not given:
        return f"{left} waiting jobs still have what was set{trouble}"
    rest = f", of which {left} could not be seen to have it" if left else ""
    return f"{given} waiting jobs were given back what they had{rest}{trouble}"


def _of_line(line: Line, picture: Picture, ordering: Ordering, now_s: float) -> Iterator[Place]:
    stands = {each.name: at for at, each in enumerate(in_place([each.placed for each in line.wanted]), start=1)}
    following = {change.job.name: change.priority for change in line.changes}
    for at, each in enumerate(line.wanted, start=1):
        key = wanted_key(each, picture.known, ordering.asked, now_s) if ordering.asked is not None else ()
        to = following.get(each.name, each.job.priority)
        yield _row(each, stands[each.name], at, key, to, _moved(each))


def _apart(one: Waiting) -> Place:
    return _row(one, None, None, (), one.job.priority, one.apart)


def _standing(one: Waiting) -> Place:
    return _row(one, None, None, (), one.natural, _moved(one))


def _moved(one: Waiting) -> str:
    if one.shift is None or not one.shift.away:
        return ""
    seen = "seen" if one.shift.state is ShiftState.SET else "asked for"
    return f"{one.shift.lever.value} {one.shift.home} -> {one.shift.asked}, {seen}"


def _row(one: Waiting, place: int | None, wanted: int | None, key: tuple[float, ...], to: int, why: str) -> Place:
    job = one.job
    found = one.shift.nice if one.shift is not None else job.nice
    return Place(
        one.name,
        job.user,
        job.partition,
        job.qos,
        place,
        wanted,
        key,
        job.priority,
        one.natural,
        to,
        job.nice,
        found,
        why,
    )
