"""The chain over the book: each row that is appended is sealed by a link, and each link by the one after it."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, IntentEvent, WouldBeStop
from evalstopd.core.model import JobKey, Life, Point, Rung
from evalstopd.core.preempt import Preemption
from evalstopd.core.watch import Lived, Pin, Remark

GENESIS = "0" * 64
"""The hash of a chain without links."""
DECIDED = ("evidence", "created_s")
"""What never changes of an intent: the store keeps it as it was written first."""
_encoded = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_FLOATS = (float, float | None)
_HEAD = re.compile(r"(?:([0-9]{1,18}):)?([0-9a-f]{64})", re.ASCII)


class Kind(StrEnum):
    """What a link seals.

    DECISION: what an intent was decided on, once. INTENT: all else of an intent, anew at each writing, so that only
    its last link tells of the row as it is; so with PIN, PREEMPTION, with LIFE, which gets one where it has changed,
    and with POINTS, a batch of a job's points: all that one transaction brought. FORGOTTEN: a job over for long, whose
    points, pins and lives were removed. All others never change.
    """

    DECISION = "decision"
    INTENT = "intent"
    EVENT = "event"
    CREDIT = "credit"
    WOULD_BE = "would-be"
    REMARK = "remark"
    PIN = "pin"
    BINDING = "binding"
    BREAKER = "breaker"
    POINTS = "points"
    LIFE = "life"
    PREEMPTION = "preemption"
    FORGOTTEN = "forgotten"


RENEWED = frozenset({Kind.INTENT, Kind.PIN, Kind.POINTS, Kind.LIFE, Kind.PREEMPTION})
"""Kinds of which only the last link tells of the row as it is."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row to be sealed: its kind, its name in the book, and the SHA-256 of what it says, in hexadecimal."""

    kind: str
    ref: str
    digest: str


@dataclass(frozen=True, slots=True)
class Link:
    """A sealed row. `seq` counts from 1 without a gap; `hash` is the SHA-256 over the last link's hash and the row."""

    seq: int
    kind: str
    ref: str
    digest: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends. Whoever noted it elsewhere can prove later that nothing before it was changed.

    `length` is None where only the hash was noted.
    """

    length: int | None = 0
    hash: str = GENESIS

    @property
    def text(self) -> str:
        """Return the head as one word."""
        return self.hash if self.length is None else f"{self.length}:{self.hash}"


@dataclass(frozen=True, slots=True)
class Held:
    """A link with the digest of the row that it names as this is now; None where there is no such row.

    `GARBLED` where the row cannot be read any more.
    """

    link: Link
    found: str | None


GARBLED = "garbled"


def parse_head(text: str) -> Head:
    """Read `LENGTH:HASH` or a hash alone. Raises ValueError for any other text."""
    found = _HEAD.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{text!a} is neither LENGTH:HASH nor a hash of 64 hexadecimal digits")
    return Head(None if found[1] is None else int(found[1]), found[2])


def seal(before: str, kind: str, ref: str, digest: str) -> str:
    """Return the hash of a link that follows a hash."""
    return _sha256([before, kind, ref, digest])


def extend(length: int, before: str, entries: Iterable[Entry]) -> tuple[Link, ...]:
    """Return the links of entries that follow a chain of so many links with this hash."""
    links: list[Link] = []
    for seq, entry in enumerate(entries, length + 1):
        before = seal(before, entry.kind, entry.ref, entry.digest)
        links.append(Link(seq, entry.kind, entry.ref, entry.digest, before))
    return tuple(links)


def decision(intent: Intent) -> Entry:
    """Return what seals the evidence of an intent."""
    return Entry(Kind.DECISION, intent.id, _sha256(_parts(intent, only=DECIDED)))


def standing(intent: Intent) -> Entry:
    """Return what seals all of an intent but its evidence, as it stands."""
    return Entry(Kind.INTENT, intent.id, _sha256(_parts(intent, leave=DECIDED)))


def event(each: IntentEvent) -> Entry:
    """Return what seals one line of an intent's history."""
    ref = f"{each.intent_id}:{each.seq}"
    return Entry(Kind.EVENT, ref, _sha256(_parts(each, leave=("intent_id", "seq"))))


def credit(each: Credit) -> Entry:
    """Return what seals the credit for an undone stop."""
    return Entry(Kind.CREDIT, each.intent_id, _sha256(_parts(each, leave=("intent_id",))))


def would_be_name(stop: WouldBeStop) -> str:
    """Return the name of a would-be stop in the book: one a life."""
    return _of_life(stop.key, stop.life)


def _of_life(key: JobKey, life: Life) -> str:
    return f"{key.text}:{life.restarts}:{life.submitted_s}"


def job_of_life(ref: str) -> str:
    """Return the job's name in the book, of the name of what there is one of a life."""
    return ref.rsplit(":", 2)[0]


def would_be(stop: WouldBeStop) -> Entry:
    """Return what seals a would-be stop."""
    return Entry(Kind.WOULD_BE, would_be_name(stop), _sha256(_parts(stop, leave=("key", "life"))))


def remark(number: int, each: Remark) -> Entry:
    """Return what seals a remark of this number."""
    return Entry(Kind.REMARK, str(number), _sha256(_parts(each)))


def pin(each: Pin) -> Entry:
    """Return what seals a pin as it stands."""
    return Entry(Kind.PIN, f"{each.key.text}:{each.step}", _sha256(_parts(each, leave=("key", "step"))))


def life(each: Lived) -> Entry:
    """Return what seals a life as it stands."""
    return Entry(Kind.LIFE, _of_life(each.key, each.life), _sha256(_parts(each, leave=("key", "life"))))


def preemption(each: Preemption) -> Entry:
    """Return what seals a preemption as it stands."""
    return Entry(Kind.PREEMPTION, _of_life(each.key, each.life), _sha256(_parts(each, leave=("key", "life"))))


def binding(number: int, each: Binding) -> Entry:
    """Return what seals a binding of this number."""
    return Entry(Kind.BINDING, str(number), _sha256(_parts(each)))


def breaker(number: int, turn: BreakerTurn) -> Entry:
    """Return what seals a breaker's turn of this number."""
    return Entry(Kind.BREAKER, str(number), _sha256(_parts(turn)))


@dataclass(frozen=True, slots=True)
class Batch:
    """The points that one transaction brought of a job; `number` tells it from the job's other batches."""

    job: str
    number: int
    points: Sequence[Point]


def batch(each: Batch) -> Entry:
    """Return what seals a batch of points, in whatever order they come."""
    rows = sorted(
        [
            p.life,
            p.step,
            p.timestamp_ms,
            p.run_id,
            p.metric,
            repr(float(p.value)),
            float(p.arrived_s) + 0.0,
            repr(p.stderr),
            # Of most there is none: their rows stay as they were sealed before there were any.
            *([p.dataset] if p.dataset else []),
        ]
        for p in each.points
    )
    return Entry(Kind.POINTS, f"{each.job}:{each.number}", _sha256(rows))


def forgotten(job: str) -> Entry:
    """Return what tells that points, pins and lives of a job were removed: it was over for long, and undecided."""
    return Entry(Kind.FORGOTTEN, job, _sha256(job))


@dataclass(frozen=True, slots=True)
class Appended:
    """The rows that one transaction adds to the book; `decided` are the intents that it did not have before."""

    decided: Sequence[Intent] = ()
    intents: Sequence[Intent] = ()
    events: Sequence[IntentEvent] = ()
    credits: Sequence[Credit] = ()
    would_be: Sequence[WouldBeStop] = ()
    remarks: Sequence[Remark] = ()
    bindings: Sequence[Binding] = ()
    breakers: Sequence[BreakerTurn] = ()
    pins: Sequence[Pin] = ()
    batches: Sequence[Batch] = ()
    lives: Sequence[Lived] = ()
    preemptions: Sequence[Preemption] = ()
    forgotten: Sequence[str] = ()

    def links(self, length: int, before: str) -> tuple[Link, ...]:
        """Return the links that seal all of it, in this order, after a chain of so many links."""
        numbers = self.numbers(length)
        entries = [
            *map(decision, self.decided),
            *map(standing, self.intents),
            *map(event, self.events),
            *map(credit, self.credits),
            *map(would_be, self.would_be),
            *map(remark, numbers[Kind.REMARK], self.remarks),
            *map(binding, numbers[Kind.BINDING], self.bindings),
            *map(breaker, numbers[Kind.BREAKER], self.breakers),
            *map(pin, self.pins),
            *map(batch, self.batches),
            *map(life, self.lives),
            *map(preemption, self.preemptions),
            *map(forgotten, self.forgotten),
        ]
        return extend(length, before, entries)

    def numbers(self, length: int) -> Mapping[Kind, range]:
        """Return the numbers of rows that bear those of their links."""
        first = length + 1 + sum(map(len, (self.decided, self.intents, self.events, self.credits, self.would_be)))
        found: dict[Kind, range] = {}
        for kind, members in (
            (Kind.REMARK, self.remarks),
            (Kind.BINDING, self.bindings),
            (Kind.BREAKER, self.breakers),
        ):
            found[kind] = range(first, first + len(members))
            first += len(members)
        return found


def _sha256(value: Any) -> str:
    """Return the SHA-256 of a value's canonical bytes: JSON, keys sorted, no spaces, UTF-8 that takes any str."""
    return hashlib.sha256(_encoded(value).encode("utf-8", "surrogatepass")).hexdigest()


def _parts(record: Any, *, only: Sequence[str] = (), leave: Sequence[str] = ()) -> dict[str, Any]:
    """Return a record's fields by name; one that has its default is left out.

    So a field that a later version adds changes no digest of a row that was written before it.
    """
    found: dict[str, Any] = {}
    for each in fields(record):
        value = getattr(record, each.name)
        wanted = each.name in only if only else each.name not in leave
        if wanted and (each.default is MISSING or value != each.default):
            # Databases give back 1.0 for 1 and lose the sign of zero.
            is_float = each.type in _FLOATS and value is not None
            found[each.name] = float(value) + 0.0 if is_float else _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Rung):
        return value.word
    if is_dataclass(value):
        return _parts(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
