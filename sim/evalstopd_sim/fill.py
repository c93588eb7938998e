"""Who starts and who yields: the jobs in rank order get GPUs as long as they fit."""

from typing import NamedTuple

from evalstopd_sim.options import HeadOfLine
from evalstopd_sim.ranks import Running, Tail, Waiting
from evalstopd_sim.simjob import Entry, SimJob


class Changes(NamedTuple):
    """What has to change so that the cluster runs what the ranking says: first yield, then start."""

    yields: list[SimJob]
    starts: list[SimJob]


def fill(waiting: Waiting, running: Running, free: int, now_s: float, head: HeadOfLine) -> Changes:
    """Return the changes that giving GPUs out anew in rank order would make; GPUs are slots.

    Same result as ranking everybody and filling from the top, at the cost of the jobs at the lower end
    that are touched. `free` below 0 stands for GPUs promised to a better-ranked job and still held by
    worse-ranked ones. With a strict head of line no waiting job starts after one that did not fit.
    """
    alone = waiting.only()
    if alone is not None and alone[3].gpus <= free:
        return Changes([], [alone[3]])
    changes = Changes([], [])
    place: Entry | None = None
    tail = running.tail(now_s)
    while True:
        start = _next_start(waiting, tail, free, place, head)
        victim = _next_victim(tail, -free, place) if free < 0 else None
        if start is not None and (victim is None or start < victim):
            place, free = start, free - start[3].gpus
            changes.starts.append(start[3])
        elif victim is not None:
            if head is HeadOfLine.STRICT and min(waiting.heads(place), default=victim) < victim:
                waiting = Waiting()
            place, free = victim, free + victim[3].gpus
            changes.yields.append(victim[3])
        else:
            return changes


def _next_start(waiting: Waiting, tail: Tail, free: int, place: Entry | None, head: HeadOfLine) -> Entry | None:
    """Return the best-ranked waiting job after `place` that fits where it ranks."""
    found: Entry | None = None
    if head is HeadOfLine.STRICT:
        found = min(waiting.heads(place), default=None)
        return found if found is not None and _fits(found, tail, free) else None
    for entry in waiting.heads(place):
        if (found is None or entry < found) and (entry[3].gpus <= free or _fits(entry, tail, free)):
            found = entry
    return found


def _fits(entry: Entry, tail: Tail, free: int) -> bool:
    """Tell whether what is free and what worse-ranked jobs hold is enough."""
    lacking = entry[3].gpus - free
    place = 0
    while lacking > 0:
        worse = tail.get(place)
        if worse is None or worse < entry:
            return False
        lacking -= worse[3].gpus
        place += 1
    return True


def _next_victim(tail: Tail, lacking: int, place: Entry | None) -> Entry | None:
    """Return the best-ranked running job after `place` that no longer fits: those below it hold too little."""
    victim: Entry | None = None
    at = 0
    while lacking > 0:
        worse = tail.get(at)
        if worse is None or (place is not None and worse < place):
            return victim
        victim = worse
        lacking -= worse[3].gpus
        at += 1
    return victim
