"""Between the dataclasses of the core and the rows of the tables: fields and columns bear the same names."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn
from evalstopd.core.chain import Link
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, IntentEvent, WouldBeStop
from evalstopd.core.model import JobKey, Life, Point
from evalstopd.core.preempt import Preemption
from evalstopd.core.shift import Shift
from evalstopd.core.watch import Lived, Pin, Remark, Terms, Watch
from evalstopd.store.tables import (
    Base,
    BindingRow,
    BreakerRow,
    CreditRow,
    EventRow,
    IntentRow,
    JobRow,
    LifeRow,
    LinkRow,
    PinRow,
    PointRow,
    PreemptionRow,
    RemarkRow,
    ShiftRow,
    WatchRow,
    WouldBeRow,
)

Values = Mapping[str, Any]


def job_values(key: JobKey) -> Values:
    """Return the row of a job."""
    return _shared(key, JobRow) | _owner(key)


def life_values(watch: Watch) -> Values:
    """Return the row of a watch's present life."""
    return _shared(watch, LifeRow) | _owner(watch.key) | _life(watch.life)


def watch_values(watch: Watch) -> Values:
    """Return the row of a watch; what belongs to the life is in the row of the life."""
    over = {"over": watch.ending is not None}
    return _shared(watch, WatchRow) | _shared(watch.terms, WatchRow) | _owner(watch.key) | _life(watch.life) | over


def point_values(key: JobKey, point: Point, batch: int) -> Values:
    """Return the row of a point that a batch brought."""
    return _shared(point, PointRow) | _owner(key) | {"batch": batch}


def pin_values(pin: Pin) -> Values:
    """Return the row of a pin."""
    return _shared(pin, PinRow) | _owner(pin.key)


def intent_values(intent: Intent) -> Values:
    """Return the row of an intent."""
    trigger = {"trigger_step": intent.evidence.trigger_step}
    return _shared(intent, IntentRow) | _owner(intent.key) | _life(intent.life) | trigger


def event_values(event: IntentEvent) -> Values:
    """Return the row of an event."""
    return _shared(event, EventRow)


def would_be_values(stop: WouldBeStop) -> Values:
    """Return the row of a would-be stop."""
    return _shared(stop, WouldBeRow) | _owner(stop.key) | _life(stop.life)


def binding_values(number: int, binding: Binding) -> Values:
    """Return the row of a binding of this number."""
    return _shared(binding, BindingRow) | _owner(binding.key) | {"id": number}


def credit_values(credit: Credit) -> Values:
    """Return the row of a credit."""
    return _shared(credit, CreditRow) | _owner(credit.key)


def remark_values(number: int, remark: Remark) -> Values:
    """Return the row of a remark of this number."""
    return _shared(remark, RemarkRow) | {"id": number}


def link_values(link: Link) -> Values:
    """Return the row of a link."""
    return _shared(link, LinkRow)


def breaker_values(number: int, turn: BreakerTurn) -> Values:
    """Return the row of a breaker's turn of this number."""
    return _shared(turn, BreakerRow) | {"id": number}


def preemption_values(asked: Preemption) -> Values:
    """Return the row of a preemption."""
    return _shared(asked, PreemptionRow) | _owner(asked.key) | _life(asked.life)


def shift_values(shift: Shift) -> Values:
    """Return the row of a moved job."""
    return _shared(shift, ShiftRow) | _shared(shift.key, ShiftRow)


# What is selected for each dataclass: the key's columns, the life's, then the columns of its fields in their order.
KEY = (JobRow.cluster, JobRow.job_id, JobRow.uid, JobRow.submitted_s)
_TERMS = tuple(getattr(WatchRow, each.name) for each in fields(Terms))
_AFTER_TERMS = 6 + len(_TERMS)


def _columns(kind: Any, *tables: type[Base]) -> tuple[Any, ...]:
    names = [each.name for each in fields(kind) if each.name not in ("key", "life", "terms")]
    return tuple(next(getattr(table, name) for table in tables if hasattr(table, name)) for name in names)


POINT_COLUMNS = (PointRow.job, *(getattr(PointRow, each.name) for each in fields(Point)))
WATCH_COLUMNS = (*KEY, WatchRow.restarts, WatchRow.submitted_s, *_TERMS, *_columns(Watch, WatchRow, LifeRow))
BATCHED_COLUMNS = (*POINT_COLUMNS, PointRow.batch)
BINDING_COLUMNS = (*KEY, *_columns(Binding, BindingRow))
PIN_COLUMNS = (*KEY, *_columns(Pin, PinRow))
INTENT_COLUMNS = (*KEY, IntentRow.restarts, IntentRow.submitted_s, *_columns(Intent, IntentRow))
EVENT_COLUMNS = _columns(IntentEvent, EventRow)
WOULD_BE_COLUMNS = (*KEY, WouldBeRow.restarts, WouldBeRow.submitted_s, *_columns(WouldBeStop, WouldBeRow))
CREDIT_COLUMNS = (CreditRow.intent_id, *KEY, *(getattr(CreditRow, each.name) for each in fields(Credit)[2:]))
REMARK_COLUMNS = _columns(Remark, RemarkRow)
LIVED_COLUMNS = (*KEY, LifeRow.restarts, LifeRow.submitted_s, *_columns(Lived, LifeRow))
LINK_COLUMNS = _columns(Link, LinkRow)
BREAKER_COLUMNS = _columns(BreakerTurn, BreakerRow)
PREEMPTION_COLUMNS = (
    *KEY,
    PreemptionRow.restarts,
    PreemptionRow.submitted_s,
    *_columns(Preemption, PreemptionRow),
)
SHIFT_KEY = (ShiftRow.cluster, ShiftRow.job_id, ShiftRow.uid, ShiftRow.submitted_s)
SHIFT_COLUMNS = (*SHIFT_KEY, *_columns(Shift, ShiftRow))


def watch_of(row: Sequence[Any]) -> Watch:
    """Return the watch of a row of WATCH_COLUMNS."""
    terms, (first_s, *rest) = Terms(*row[6:_AFTER_TERMS]), row[_AFTER_TERMS:]
    return Watch(JobKey(*row[:4]), Life(*row[4:6]), first_s, terms, *rest)


def pin_of(row: Sequence[Any]) -> Pin:
    """Return the pin of a row of PIN_COLUMNS."""
    return Pin(JobKey(*row[:4]), *row[4:])


def intent_of(row: Sequence[Any]) -> Intent:
    """Return the intent of a row of INTENT_COLUMNS."""
    return Intent(JobKey(*row[:4]), Life(*row[4:6]), *row[6:])


def preemption_of(row: Sequence[Any]) -> Preemption:
    """Return the preemption of a row of PREEMPTION_COLUMNS."""
    return Preemption(JobKey(*row[:4]), Life(*row[4:6]), *row[6:])


def shift_of(row: Sequence[Any]) -> Shift:
    """Return the moved job of a row of SHIFT_COLUMNS."""
    return Shift(JobKey(*row[:4]), *row[4:])


def credit_of(row: Sequence[Any]) -> Credit:
    """Return the credit of a row of CREDIT_COLUMNS."""
    return Credit(row[0], JobKey(*row[1:5]), *row[5:])


def would_be_of(row: Sequence[Any]) -> WouldBeStop:
    """Return the would-be stop of a row of WOULD_BE_COLUMNS."""
    return WouldBeStop(JobKey(*row[:4]), Life(*row[4:6]), *row[6:])


def lived_of(row: Sequence[Any]) -> Lived:
    """Return the life of a row of LIVED_COLUMNS."""
    return Lived(JobKey(*row[:4]), Life(*row[4:6]), *row[6:])


def _shared(record: Any, table: type[Base]) -> dict[str, Any]:
    """Return what a record has under the names of a table's columns."""
    columns = table.__table__.columns.keys()
    return {name: getattr(record, name) for name in columns if hasattr(record, name)}


def _owner(key: JobKey) -> dict[str, Any]:
    return {"job": key.text}


def _life(life: Life) -> dict[str, Any]:
    return {"restarts": life.restarts, "submitted_s": life.submitted_s}
