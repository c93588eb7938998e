"""Walking the chain over the book: is every row what was written, in the order in which it was written?"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from evalstopd.core.chain import GARBLED, GENESIS, RENEWED, Head, Held, Kind, Link, job_of_life, seal
from evalstopd.ports import Chain
from evalstopd.report.text import plain

PAGE = 500
_MOST_UNSEALED = 100
_START = Link(0, "", "", "", GENESIS)
Watched = Callable[[Iterable[Held], int], Iterable[Held]]
"""What shows the progress of a walk of so many links."""


@dataclass(frozen=True, slots=True)
class Break:
    """One place where the book is not what was written.

    `seq` is the number of the link, None where no link names the row. `what` is changed, removed, inserted,
    reordered or truncated; `row` names the row in words.
    """

    seq: int | None
    what: str
    row: str
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk found: the links walked, where the chain ends, and every break, the first one first.

    `forgotten` counts the jobs whose points, pins and lives were removed for their age.
    """

    good: bool
    links: int
    head: Head
    noted: Head | None
    first: Break | None
    breaks: tuple[Break, ...]
    forgotten: int = 0


def verify(book: Chain, noted: Head | None = None, watched: Watched = lambda walk, _: walk) -> Verification:
    """Walk the chain from its first link to its last; `noted` is a head that was kept elsewhere.

    Without one, whoever can write to the store can remove the newest rows or write all anew, and nothing shows it.
    """
    own = book.head()
    walk = _Walk(book, marks=[each for each in (own, noted) if each is not None])
    for held in watched(_pages(book), own.length or 0 if own is not None else 0):
        walk.take(held)
    breaks = sorted(
        [*walk.breaks, *walk.rows(), *_inserted(book), *walk.ends(own, noted), *walk.beyond(book.head())],
        key=lambda each: math.inf if each.seq is None else each.seq,
    )
    head = Head(walk.last.seq, walk.last.hash)
    first = breaks[0] if breaks else None
    return Verification(not breaks, walk.last.seq, head, noted, first, tuple(breaks), len(walk.forgotten))


def _pages(book: Chain) -> Iterator[Held]:
    after = 0
    while page := book.held(after, PAGE):
        yield from page
        after = page[-1].link.seq


@dataclass(slots=True)
class _Walk:
    """What is known after so many links.

    Where a row may have several links, only the newest tells of it as it is: `renewed` has those whose last link does
    not. `forgotten` has the last link that tells so of a job, `decided` the jobs that a stop was decided or booked of.
    """

    book: Chain
    marks: list[Head]
    last: Link = _START
    seen: set[Head] = field(default_factory=lambda: {Head(0, GENESIS), Head(None, GENESIS)})
    breaks: list[Break] = field(default_factory=list)
    renewed: dict[tuple[str, str], Held] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    wrong: list[Held] = field(default_factory=list)
    torn: int = -1

    def take(self, held: Held) -> None:
        """Take the next link; of several in a row that do not follow, the first tells what happened."""
        link = held.link
        if link.seq != self.last.seq + 1:
            self.breaks.append(_gap(self.last.seq, link.seq))
        elif not _follows(self.last, link):
            if self.torn != self.last.seq:
                self.breaks.append(_torn(self.book, self.last, link))
            self.torn = link.seq
        self._compare(held)
        self.seen |= {mark for mark in self.marks if mark.hash == link.hash and mark.length in (None, link.seq)}
        self.last = link

    def _compare(self, held: Held) -> None:
        """Keep what is not as its link says, until a later link says otherwise."""
        link = held.link
        if link.kind in (Kind.DECISION, Kind.WOULD_BE):
            self.decided.add(job_of_life(link.ref))
        if link.kind == Kind.FORGOTTEN:
            self.forgotten[link.ref] = link.seq
        if link.kind not in RENEWED:
            self.wrong += [] if held.found == link.digest else [held]
        elif held.found == link.digest:
            self.renewed.pop((link.kind, link.ref), None)
        else:
            self.renewed[(link.kind, link.ref)] = held

    def _was_forgotten(self, held: Held) -> bool:
        """Tell whether a row is gone because its job was over for long; one that was decided on never is."""
        ref, is_life = held.link.ref, held.link.kind == Kind.LIFE
        job = job_of_life(ref) if is_life else ref.rpartition(":")[0]
        of_job = (is_life or held.link.kind in (Kind.PIN, Kind.POINTS)) and job not in self.decided
        return of_job and held.found is None and self.forgotten.get(job, 0) > held.link.seq

    def rows(self) -> Iterator[Break]:
        """Yield the rows that are not as their links say."""
        wrong = [*self.wrong, *(held for held in self.renewed.values() if not self._was_forgotten(held))]
        meant = {(held.link.kind, held.link.digest): held.link for held in wrong}
        for held in wrong:
            yield _row(held, meant.get((held.link.kind, held.found or "")))

    def ends(self, own: Head | None, noted: Head | None) -> Iterator[Break]:
        """Yield what is wrong with the chain's end."""
        if own is None and self.last.seq:
            yield Break(None, "removed", "the head", "the store's own note of the chain's head is gone")
        for head, of in ((own, "the store's own head"), (noted, "the head noted elsewhere")):
            if head is not None and head not in self.seen:
                yield self._end(head, of)

    def beyond(self, own: Head | None) -> Iterator[Break]:
        """Yield links after the head as it is at the end of the walk: the daemon writes both together."""
        if own is not None and own.length is not None and own.length < self.last.seq:
            text = f"the chain goes on after the store's own head, link {own.length}"
            yield Break(own.length + 1, "inserted", f"links {own.length + 1} to {self.last.seq}", text)

    def _end(self, head: Head, of: str) -> Break:
        length = self.last.seq
        if head.length is None:
            text = f"{of} is in none of the {length} links: the newest were cut off, or all were written anew"
            return Break(length + 1, "truncated", of, text)
        if head.length > length:
            text = f"{of} is link {head.length}, the chain ends with link {length}: the newest rows were cut off"
            return Break(length + 1, "truncated", f"links {length + 1} to {head.length}", text)
        text = f"{of} is not the hash of link {head.length}: this link or one before it was written anew"
        return Break(head.length, "changed", f"link {head.length}", text)


def _gap(before: int, after: int) -> Break:
    several = after > before + 2
    missing = f"links {before + 1} to {after - 1}" if several else f"link {before + 1}"
    return Break(before + 1, "removed", missing, f"{missing} of the chain {'are' if several else 'is'} missing")


def _torn(book: Chain, before: Link, link: Link) -> Break:
    """Return what most likely happened where a link does not follow from the one before it."""
    earlier = [held.link for held in book.held(before.seq - 2, 1)] if before.seq > 1 else [_START]
    home = next((held.link for held in book.held(link.seq, PAGE) if _follows(before, held.link)), None)
    if before.seq and _follows(earlier[0], link):
        return _put_between(before)
    if home is not None and home.seq == link.seq + 1 and not _follows(home, link):
        return _put_between(link)
    if home is not None:
        text = f"link {link.seq}, {row_of(link)}, is where link {home.seq}, {row_of(home)}, belongs"
        return Break(link.seq, "reordered", row_of(link), text)
    follows = f"link {link.seq}, {row_of(link)}, does not follow from link {before.seq}"
    text = f"{follows}: one of them was changed, or one between was removed"
    return Break(link.seq, "changed", row_of(link), text)


def _put_between(link: Link) -> Break:
    text = f"link {link.seq}, {row_of(link)}, was put between two that belong together"
    return Break(link.seq, "inserted", row_of(link), text)


def _follows(before: Link, link: Link) -> bool:
    return link.hash == seal(before.hash, link.kind, link.ref, link.digest)


def _row(held: Held, meant_for: Link | None) -> Break:
    link, row = held.link, row_of(held.link)
    if held.found is None:
        return Break(link.seq, "removed", row, f"{row} is gone")
    if held.found == GARBLED:
        return Break(link.seq, "changed", row, f"{row} was changed so that it cannot be read")
    if meant_for is not None:
        text = f"{row} now says what was written as link {meant_for.seq}, {row_of(meant_for)}"
        return Break(link.seq, "reordered", row, text)
    return Break(link.seq, "changed", row, f"{row} is not what was written")


def _inserted(book: Chain) -> Iterator[Break]:
    for kind, ref in book.unsealed(_MOST_UNSEALED):
        row = _named(kind, ref)
        yield Break(None, "inserted", row, f"{row} was not written by evalstopd: no link seals it")


def row_of(link: Link) -> str:
    """Return the row that a link names, in words."""
    return _named(link.kind, link.ref)


def _named(kind: str, ref: str) -> str:
    of, _, number = ref.rpartition(":")
    words = {
        Kind.DECISION: f"the evidence of stop {ref}",
        Kind.INTENT: f"the state of stop {ref}",
        Kind.EVENT: f"event {number} of stop {of}",
        Kind.CREDIT: f"the credit for stop {ref}",
        Kind.WOULD_BE: f"would-be stop {ref}",
        Kind.REMARK: f"remark {ref}",
        Kind.BINDING: f"binding {ref}",
        Kind.BREAKER: f"turn {ref} of a breaker",
        Kind.PIN: f"the pin of step {number} of job {of}",
        Kind.POINTS: f"the points of job {of} in batch {number}",
        Kind.LIFE: f"life {_restarts(ref)} of job {job_of_life(ref)}",
        Kind.PREEMPTION: f"the preemption of life {_restarts(ref)} of job {job_of_life(ref)}",
        Kind.FORGOTTEN: f"that job {ref} was forgotten",
    }
    return plain(words.get(Kind(kind), "") if kind in set(Kind) else f"a row of the unknown kind {kind}: {ref}", 300)


def _restarts(ref: str) -> str:
    return ref.removeprefix(job_of_life(ref)).removeprefix(":").partition(":")[0]


def sentences(found: Verification, most: int = 20) -> Sequence[str]:
    """Return a verification as people read it, the first break first."""
    if found.first is None:
        against = "; the head noted elsewhere is in it" if found.noted is not None else ""
        old = (
            f"; points, pins and lives of {found.forgotten} jobs were forgotten for their age"
            if found.forgotten
            else ""
        )
        return [
            f"the book is whole: {found.links} links, each row as it was written{old}{against}",
            f"head {found.head.text}",
        ]
    lines = [f"the book is not what was written. First: {_line(found.first)}"]
    lines += [f"then: {_line(each)}" for each in found.breaks[1:most]]
    rest = len(found.breaks) - most
    return [*lines, f"and {rest} more"] if rest > 0 else lines


def _line(each: Break) -> str:
    return f"{each.what}{'' if each.seq is None else f' at link {each.seq}'}: {each.text}"
