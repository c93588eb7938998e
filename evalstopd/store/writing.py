"""What one transaction of the SQL store writes, kind by kind, in the order that foreign keys ask for."""

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, IntentEvent, State
from evalstopd.core.model import JobKey
from evalstopd.ports import Changes
from evalstopd.store import rows
from evalstopd.store.chunks import chunks
from evalstopd.store.order import check_intent_known, check_move, is_new
from evalstopd.store.rows import Values
from evalstopd.store.tables import (
    Base,
    BindingRow,
    BreakerRow,
    CreditRow,
    EventRow,
    IntentRow,
    JobRow,
    LifeRow,
    PinRow,
    PointRow,
    RemarkRow,
    WatchRow,
    WouldBeRow,
)


def write(to: Connection, changes: Changes) -> None:
    """Write all changes. Raises Rejected for an intent or event that another daemon has moved on."""
    _add(to, JobRow, [rows.job_values(key) for key in _keys(changes)])
    _replace(to, LifeRow, [rows.life_values(watch) for watch in changes.watches])
    _replace(to, WatchRow, [rows.watch_values(watch) for watch in changes.watches])
    _write_points(to, [rows.point_values(key, point) for key, point in changes.points])
    _replace(to, PinRow, [rows.pin_values(pin) for pin in changes.pins])
    _write_intents(to, changes.intents)
    _write_events(to, changes.events)
    _write_credits(to, changes.credits)
    _add(to, WouldBeRow, [rows.would_be_values(stop) for stop in changes.would_be])
    _add(to, BindingRow, [rows.binding_values(binding) for binding in changes.bindings])
    _add(to, RemarkRow, [rows.remark_values(remark) for remark in changes.remarks])
    _add(to, BreakerRow, [rows.breaker_values(turn) for turn in changes.breakers])


def _keys(changes: Changes) -> list[JobKey]:
    kinds = (changes.watches, changes.pins, changes.intents, changes.would_be, changes.bindings, changes.credits)
    named = [each.key for kind in kinds for each in kind]
    return list(dict.fromkeys([*named, *(key for key, _ in changes.points)]))


def _write_intents(to: Connection, intents: Sequence[Intent]) -> None:
    """Compare and set; the evidence stays what it was when the stop was decided."""
    stored: dict[str, State] = {}
    for ids in chunks(intent.id for intent in intents):
        found = to.execute(select(IntentRow.id, IntentRow.state).where(IntentRow.id.in_(ids)))
        stored |= {row.id: row.state for row in found}
    for intent in intents:
        check_move(intent, stored.get(intent.id))
        stored[intent.id] = intent.state
    _replace(to, IntentRow, [rows.intent_values(intent) for intent in intents], keep=("evidence", "created_s"))


def _write_events(to: Connection, events: Sequence[IntentEvent]) -> None:
    known: set[str] = set()
    stored: dict[tuple[str, int], IntentEvent] = {}
    for ids in chunks(event.intent_id for event in events):
        known |= set(to.scalars(select(IntentRow.id).where(IntentRow.id.in_(ids))))
        columns = (EventRow.intent_id, EventRow.seq, EventRow.at_s, EventRow.kind, EventRow.text)
        found = to.execute(select(*columns).where(EventRow.intent_id.in_(ids)))
        stored |= {(row[0], row[1]): IntentEvent(*row) for row in found}
    fresh = []
    for event in events:
        check_intent_known(event, known=event.intent_id in known)
        if is_new(event, stored.get((event.intent_id, event.seq))):
            fresh.append(rows.event_values(event))
            stored[event.intent_id, event.seq] = event
    if fresh:
        to.execute(_table(EventRow).insert(), fresh)


def _write_credits(to: Connection, booked: Sequence[Credit]) -> None:
    """Insert the credits of intents that have none; the table's triggers refuse any other writing."""
    fresh = {credit.intent_id: credit for credit in reversed(booked)}
    for ids in chunks(fresh):
        for known in to.scalars(select(CreditRow.intent_id).where(CreditRow.intent_id.in_(ids))).all():
            del fresh[known]
    _add(to, CreditRow, [rows.credit_values(credit) for credit in fresh.values()])


def _write_points(to: Connection, values: Sequence[Values]) -> None:
    """Insert points; one that is there already stays, but takes a standard error that it did not have."""
    if values:
        insert = _insert(to, PointRow)
        error = func.coalesce(_table(PointRow).c.stderr, insert.excluded.stderr)
        to.execute(
            insert.on_conflict_do_update(index_elements=list(_table(PointRow).primary_key), set_={"stderr": error}),
            values,
        )


def _add(to: Connection, kind: type[Base], values: Sequence[Values]) -> None:
    """Insert rows; one whose key is there already stays as it is."""
    if values:
        to.execute(_insert(to, kind).on_conflict_do_nothing(), values)


def _replace(to: Connection, kind: type[Base], values: Sequence[Values], keep: tuple[str, ...] = ()) -> None:
    """Insert rows; one whose key is there already gets the new values, except those to `keep`."""
    if values:
        insert = _insert(to, kind)
        key = list(_table(kind).primary_key)
        fixed = {*keep, *(column.name for column in key)}
        changed = {name: column for name, column in insert.excluded.items() if name not in fixed}
        to.execute(insert.on_conflict_do_update(index_elements=key, set_=changed), values)


def _insert(to: Connection, kind: type[Base]) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(_table(kind)) if to.dialect.name == "sqlite" else postgresql.insert(_table(kind))


def _table(kind: type[Base]) -> Table:
    return cast("Table", kind.__table__)
