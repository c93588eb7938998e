"""What the SQL store tells of its chain: the links, what each link's row is now, and the rows that have none."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, cast, exists, select

from evalstopd.core import chain
from evalstopd.core.chain import GARBLED, Entry, Head, Held, Kind, Link
from evalstopd.core.intent import IntentEvent
from evalstopd.store import reading, rows
from evalstopd.store.batches import batches_of
from evalstopd.store.chunks import chunks
from evalstopd.store.tables import (
    BindingRow,
    BreakerRow,
    CreditRow,
    EventRow,
    HeadRow,
    IntentRow,
    LifeRow,
    LinkRow,
    PinRow,
    PointRow,
    PreemptionRow,
    RemarkRow,
    WouldBeRow,
)

# What a value that this program never wrote makes of reading it.
_UNREADABLE = (LookupError, OverflowError, TypeError, ValueError)


def head(source: Connection) -> Head | None:
    """Return where the chain ends; None where the store's note of it is gone."""
    found = source.execute(select(HeadRow.length, HeadRow.hash)).first()
    return None if found is None else Head(*found)


def held(source: Connection, after: int, most: int) -> tuple[Held, ...]:
    """Return links in order, each with the digest of its row as this is now."""
    query = select(*rows.LINK_COLUMNS).where(LinkRow.seq > after).order_by(LinkRow.seq).limit(most)
    links = [Link(*row) for row in source.execute(query)]
    now = {
        kind: found.digests(source, (link.ref for link in links if link.kind == kind)) for kind, found in _ROWS.items()
    }
    return tuple(Held(link, _found(link, now)) for link in links)


def _found(link: Link, now: Mapping[Kind, Mapping[str, str]]) -> str | None:
    """Return the digest of a link's row; what tells that a job was forgotten has none beside its link."""
    if link.kind == Kind.FORGOTTEN:
        return chain.forgotten(link.ref).digest
    return now.get(Kind(link.kind), {}).get(link.ref) if link.kind in set(Kind) else None


def unsealed(source: Connection, most: int) -> tuple[tuple[str, str], ...]:
    """Return kind and name of rows that no link seals, `most` at most of each kind."""
    found = []
    for kind, name in _NAMES.items():
        sealed = exists().where(LinkRow.ref == name, LinkRow.kind == kind)
        # Distinct: the points of a batch have one name.
        asked = select(name).where(~sealed).distinct().limit(most)
        found += [(str(kind), str(row[0])) for row in source.execute(asked)]
    return tuple(found)


def _text(column: Any) -> ColumnElement[str]:
    return cast(column, Text)


def _of_life(row: type[WouldBeRow | LifeRow | PreemptionRow]) -> ColumnElement[str]:
    """Return the name of what there is one of a life."""
    return row.job + ":" + _text(row.restarts) + ":" + _text(row.submitted_s)


_NAMES: Mapping[Kind, ColumnElement[str]] = MappingProxyType(
    {
        Kind.DECISION: IntentRow.id.expression,
        Kind.INTENT: IntentRow.id.expression,
        Kind.EVENT: EventRow.intent_id + ":" + _text(EventRow.seq),
        Kind.CREDIT: CreditRow.intent_id.expression,
        Kind.WOULD_BE: _of_life(WouldBeRow),
        Kind.REMARK: _text(RemarkRow.id),
        Kind.BINDING: _text(BindingRow.id),
        Kind.BREAKER: _text(BreakerRow.id),
        Kind.PIN: PinRow.job + ":" + _text(PinRow.step),
        Kind.POINTS: PointRow.job + ":" + _text(PointRow.batch),
        Kind.LIFE: _of_life(LifeRow),
        Kind.PREEMPTION: _of_life(PreemptionRow),
    }
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """How the rows of one kind are found: by what a link's name begins with, many at once."""

    parent_of: Callable[[str], str]
    read: Callable[[Connection, Sequence[str]], list[Entry]]

    def digests(self, source: Connection, refs: Iterable[str]) -> dict[str, str]:
        """Return the digests of rows by name: read together where all can be read, else each by itself."""
        below: dict[str, list[str]] = defaultdict(list)
        for ref in refs:
            below[self.parent_of(ref)].append(ref)
        found: dict[str, str] = {}
        for part in chunks(below):
            try:
                found |= {entry.ref: entry.digest for entry in self.read(source, part)}
            except _UNREADABLE:
                for parent in part:
                    found |= self._alone(source, parent, below[parent])
        return found

    def _alone(self, source: Connection, parent: str, refs: Sequence[str]) -> dict[str, str]:
        try:
            return {entry.ref: entry.digest for entry in self.read(source, [parent])}
        except _UNREADABLE:
            return dict.fromkeys(refs, GARBLED)


def _decisions(source: Connection, ids: Sequence[str]) -> list[Entry]:
    return [chain.decision(each) for each in reading.intents_named(source, ids)]


def _standings(source: Connection, ids: Sequence[str]) -> list[Entry]:
    return [chain.standing(each) for each in reading.intents_named(source, ids)]


def _events(source: Connection, ids: Sequence[str]) -> list[Entry]:
    return [_event(each) for each in reading.events(source, ids)]


def _event(each: IntentEvent) -> Entry:
    """Return what seals an event: one that cannot be read must not hide those beside it."""
    try:
        return chain.event(each)
    except _UNREADABLE:
        return Entry(Kind.EVENT, f"{each.intent_id}:{each.seq}", GARBLED)


def _credits(source: Connection, ids: Sequence[str]) -> list[Entry]:
    return [chain.credit(each) for each in reading.credits_for(source, ids)]


def _would_be(source: Connection, jobs: Sequence[str]) -> list[Entry]:
    return [chain.would_be(each) for each in reading.would_be(source, jobs)]


def _remarks(source: Connection, numbers: Sequence[str]) -> list[Entry]:
    return [chain.remark(number, each) for number, each in reading.remarks_numbered(source, [*map(int, numbers)])]


def _bindings(source: Connection, numbers: Sequence[str]) -> list[Entry]:
    return [chain.binding(number, each) for number, each in reading.bindings_numbered(source, [*map(int, numbers)])]


def _breakers(source: Connection, numbers: Sequence[str]) -> list[Entry]:
    return [chain.breaker(number, each) for number, each in reading.breakers_numbered(source, [*map(int, numbers)])]


def _pins(source: Connection, jobs: Sequence[str]) -> list[Entry]:
    return [chain.pin(each) for each in reading.pins(source, jobs)]


def _points(source: Connection, jobs: Sequence[str]) -> list[Entry]:
    return [chain.batch(each) for each in batches_of(source, jobs)]


def _lives(source: Connection, jobs: Sequence[str]) -> list[Entry]:
    return [chain.life(each) for each in reading.lives(source, jobs)]


def _preemptions(source: Connection, jobs: Sequence[str]) -> list[Entry]:
    return [chain.preemption(each) for each in reading.preemptions_of(source, jobs)]


def _of_job(ref: str) -> str:
    return ref.rpartition(":")[0]


def _itself(ref: str) -> str:
    return ref


_ROWS: Mapping[Kind, _Rows] = MappingProxyType(
    {
        Kind.DECISION: _Rows(_itself, _decisions),
        Kind.INTENT: _Rows(_itself, _standings),
        Kind.EVENT: _Rows(lambda ref: ref.rpartition(":")[0], _events),
        Kind.CREDIT: _Rows(_itself, _credits),
        Kind.WOULD_BE: _Rows(chain.job_of_life, _would_be),
        Kind.REMARK: _Rows(_itself, _remarks),
        Kind.BINDING: _Rows(_itself, _bindings),
        Kind.BREAKER: _Rows(_itself, _breakers),
        Kind.PIN: _Rows(_of_job, _pins),
        Kind.POINTS: _Rows(_of_job, _points),
        Kind.LIFE: _Rows(chain.job_of_life, _lives),
        Kind.PREEMPTION: _Rows(chain.job_of_life, _preemptions),
    }
)
