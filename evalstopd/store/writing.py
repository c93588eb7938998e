"""What one transaction of the SQL store writes, kind by kind, in the order that foreign keys ask for."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from evalstopd.core.chain import DECIDED, GENESIS, Appended, Entry, Kind, life
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey, Life
from evalstopd.core.watch import Lived, Watch, lived
from evalstopd.ports import Changes
from evalstopd.store import rows
from evalstopd.store.batches import write_points
from evalstopd.store.chunks import chunks
from evalstopd.store.order import check_event, check_intent_known, check_move, unknown
from evalstopd.store.reading import present_lives
from evalstopd.store.rows import Values
from evalstopd.store.statements import insert_into, table_of
from evalstopd.store.tables import (
    Base,
    BindingRow,
    BreakerRow,
    CreditRow,
    EventRow,
    HeadRow,
    IntentRow,
    JobRow,
    LifeRow,
    LinkRow,
    PinRow,
    PreemptionRow,
    RemarkRow,
    ShiftRow,
    WatchRow,
    WouldBeRow,
)


def write(to: Connection, changes: Changes) -> None:
    """Write all changes. Raises Rejected for an intent or event that another daemon has moved on."""
    _add(to, JobRow, [rows.job_values(key) for key in _keys(changes)])
    lives = _changed_lives(to, changes.watches)
    _replace(to, LifeRow, [rows.life_values(watch) for watch in changes.watches])
    _replace(to, WatchRow, [rows.watch_values(watch) for watch in changes.watches])
    _replace(to, PinRow, [rows.pin_values(pin) for pin in changes.pins])
    _replace(to, PreemptionRow, [rows.preemption_values(each) for each in changes.preemptions])
    length, _ = _end(to) if changes.points else (0, "")
    batches = write_points(to, changes.points, length)
    _remove_shifts(to, changes.unshifted)
    _replace(to, ShiftRow, [rows.shift_values(shift) for shift in changes.shifts])
    decided = _write_intents(to, changes.intents)
    events, booked = _fresh_events(to, changes.events), _fresh_credits(to, changes.credits)
    would_be = _fresh_would_be(to, changes.would_be)
    numbered = (changes.remarks, changes.bindings, changes.breakers)
    renewed = (batches, lives, changes.preemptions)
    append(to, Appended(decided, changes.intents, events, booked, would_be, *numbered, changes.pins, *renewed))


def _keys(changes: Changes) -> list[JobKey]:
    kinds = (
        changes.watches,
        changes.pins,
        changes.intents,
        changes.would_be,
        changes.bindings,
        changes.credits,
        changes.preemptions,
    )
    named = [each.key for kind in kinds for each in kind]
    return list(dict.fromkeys([*named, *(key for key, _ in changes.points)]))


def _changed_lives(to: Connection, watches: Sequence[Watch]) -> list[Lived]:
    """Return the lives that are new, or not as they are stored: most watches change in what is read alone.

    One that was not as it was sealed is left out: sealed anew, what was forged of it would be true.
    """
    stored = {(each.key, each.life): each for each in present_lives(to, [watch.key.text for watch in watches])}
    now = {(watch.key, watch.life): lived(watch) for watch in watches}
    changed = [each for of, each in now.items() if stored.get(of) != each]
    known = [life(stored[each.key, each.life]) for each in changed if (each.key, each.life) in stored]
    forged = _not_as_sealed(to, known)
    return [each for each in changed if life(each).ref not in forged]


def _not_as_sealed(to: Connection, found: Sequence[Entry]) -> set[str]:
    """Return the names of the lives whose rows are not what their last links say."""
    last: dict[str, str] = {}
    for refs in chunks(each.ref for each in found):
        asked = select(LinkRow.ref, LinkRow.digest).where(LinkRow.kind == Kind.LIFE, LinkRow.ref.in_(refs))
        last |= {row.ref: row.digest for row in to.execute(asked.order_by(LinkRow.seq))}
    return {each.ref for each in found if last.get(each.ref) != each.digest}


def _write_intents(to: Connection, intents: Sequence[Intent]) -> list[Intent]:
    """Compare and set, and return what is new; the evidence stays what it was when the stop was decided."""
    stored: dict[str, State] = {}
    for ids in chunks(intent.id for intent in intents):
        found = to.execute(select(IntentRow.id, IntentRow.state).where(IntentRow.id.in_(ids)))
        stored |= {row.id: row.state for row in found}
    decided = unknown(intents, lambda each: each.id, stored)
    for intent in intents:
        check_move(intent, stored.get(intent.id))
        stored[intent.id] = intent.state
    _replace(to, IntentRow, [rows.intent_values(intent) for intent in intents], keep=DECIDED)
    return decided


def _fresh_events(to: Connection, events: Sequence[IntentEvent]) -> list[IntentEvent]:
    known: set[str] = set()
    stored: dict[tuple[str, int], IntentEvent] = {}
    for ids in chunks(event.intent_id for event in events):
        known |= set(to.scalars(select(IntentRow.id).where(IntentRow.id.in_(ids))))
        columns = (EventRow.intent_id, EventRow.seq, EventRow.at_s, EventRow.kind, EventRow.text)
        found = to.execute(select(*columns).where(EventRow.intent_id.in_(ids)))
        stored |= {(row[0], row[1]): IntentEvent(*row) for row in found}
    fresh = unknown(events, lambda each: (each.intent_id, each.seq), stored)
    for event in events:
        check_intent_known(event, known=event.intent_id in known)
        check_event(event, stored.setdefault((event.intent_id, event.seq), event))
    return fresh


def _fresh_would_be(to: Connection, stops: Sequence[WouldBeStop]) -> list[WouldBeStop]:
    """Return the would-be stops of lives that have none yet."""
    stored: set[tuple[str, Life]] = set()
    for jobs in chunks(stop.key.text for stop in stops):
        columns = (WouldBeRow.job, WouldBeRow.restarts, WouldBeRow.submitted_s)
        stored |= {(row[0], Life(*row[1:])) for row in to.execute(select(*columns).where(WouldBeRow.job.in_(jobs)))}
    return unknown(stops, lambda stop: (stop.key.text, stop.life), stored)


def append(to: Connection, appended: Appended) -> None:
    """Insert what is only ever appended, each row with the link that seals it. Writers come one after another."""
    length, before = _end(to)
    links = appended.links(length, before)
    if not links:
        return
    numbers = appended.numbers(length)
    _insert_all(to, EventRow, [rows.event_values(event) for event in appended.events])
    _insert_all(to, CreditRow, [rows.credit_values(credit) for credit in appended.credits])
    _insert_all(to, WouldBeRow, [rows.would_be_values(stop) for stop in appended.would_be])
    _insert_all(to, RemarkRow, list(map(rows.remark_values, numbers[Kind.REMARK], appended.remarks)))
    _insert_all(to, BindingRow, list(map(rows.binding_values, numbers[Kind.BINDING], appended.bindings)))
    _insert_all(to, BreakerRow, list(map(rows.breaker_values, numbers[Kind.BREAKER], appended.breakers)))
    _insert_all(to, LinkRow, [rows.link_values(link) for link in links])
    _replace(to, HeadRow, [{"id": 1, "length": links[-1].seq, "hash": links[-1].hash}])


def _end(to: Connection) -> tuple[int, str]:
    """Return the length and the last hash of the chain: by its head, else by its last link."""
    head = to.execute(select(HeadRow.length, HeadRow.hash)).first()
    last = head or to.execute(select(LinkRow.seq, LinkRow.hash).order_by(LinkRow.seq.desc()).limit(1)).first()
    return (last[0], last[1]) if last is not None else (0, GENESIS)


def _fresh_credits(to: Connection, booked: Sequence[Credit]) -> list[Credit]:
    """Return the credits of intents that have none yet."""
    stored: set[str] = set()
    for ids in chunks(credit.intent_id for credit in booked):
        stored |= set(to.scalars(select(CreditRow.intent_id).where(CreditRow.intent_id.in_(ids))))
    return unknown(booked, lambda credit: credit.intent_id, stored)


def _remove_shifts(to: Connection, keys: Sequence[JobKey]) -> None:
    for key in keys:
        named = zip(rows.SHIFT_KEY, (key.cluster, key.job_id, key.uid, key.submitted_s), strict=True)
        to.execute(delete(table_of(ShiftRow)).where(*(column == value for column, value in named)))


def _insert_all(to: Connection, kind: type[Base], values: Sequence[Values]) -> None:
    if values:
        to.execute(table_of(kind).insert(), values)


def _add(to: Connection, kind: type[Base], values: Sequence[Values]) -> None:
    """Insert rows; one whose key is there already stays as it is."""
    if values:
        to.execute(insert_into(to, kind).on_conflict_do_nothing(), values)


def _replace(to: Connection, kind: type[Base], values: Sequence[Values], keep: tuple[str, ...] = ()) -> None:
    """Insert rows; one whose key is there already gets the new values, except those to `keep`."""
    if values:
        insert = insert_into(to, kind)
        key = list(table_of(kind).primary_key)
        fixed = {*keep, *(column.name for column in key)}
        changed = {name: column for name, column in insert.excluded.items() if name not in fixed}
        to.execute(insert.on_conflict_do_update(index_elements=key, set_=changed), values)
