"""Between the dataclasses of the core and the rows of the tables: fields and columns bear the same names."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evalstopd.core.intent import Intent, IntentEvent, WouldBeStop
from evalstopd.core.model import JobKey, Life, Point
from evalstopd.core.watch import Pin, Remark, Terms, Watch
from evalstopd.ports import Binding
from evalstopd.store.tables import (
    Base,
    BindingRow,
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


def point_values(key: JobKey, point: Point) -> Values:
    """Return the row of a point."""
    return _shared(point, PointRow) | _owner(key)


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


def binding_values(binding: Binding) -> Values:
    """Return the row of a binding."""
    return _shared(binding, BindingRow) | _owner(binding.key)


def remark_values(remark: Remark) -> Values:
    """Return the row of a remark."""
    return _shared(remark, RemarkRow)


def key_of(job: JobRow) -> JobKey:
    """Return the key that a row of jobs stands for."""
    return JobKey(job.cluster, job.job_id, job.uid, job.submitted_s)


def watch_of(job: JobRow, life: LifeRow, row: WatchRow) -> Watch:
    """Return the watch of three rows."""
    terms = Terms(row.rung, row.rule, row.metric, row.mode)
    own = Life(row.restarts, row.submitted_s)
    return Watch(key_of(job), own, terms=terms, **_named(Watch, life) | _named(Watch, row))


def pin_of(job: JobRow, row: PinRow) -> Pin:
    """Return the pin of a row."""
    return Pin(key_of(job), **_named(Pin, row))


def intent_of(job: JobRow, row: IntentRow) -> Intent:
    """Return the intent of a row."""
    return Intent(key_of(job), Life(row.restarts, row.submitted_s), **_named(Intent, row))


def event_of(row: EventRow) -> IntentEvent:
    """Return the event of a row."""
    return IntentEvent(**_named(IntentEvent, row))


def would_be_of(job: JobRow, row: WouldBeRow) -> WouldBeStop:
    """Return the would-be stop of a row."""
    return WouldBeStop(key_of(job), Life(row.restarts, row.submitted_s), **_named(WouldBeStop, row))


def remark_of(row: RemarkRow) -> Remark:
    """Return the remark of a row."""
    return Remark(**_named(Remark, row))


def _shared(record: Any, table: type[Base]) -> dict[str, Any]:
    columns = table.__table__.columns.keys()
    return {name: getattr(record, name) for name in columns if hasattr(record, name)}


def _named(kind: Any, row: Base) -> dict[str, Any]:
    return {each.name: getattr(row, each.name) for each in fields(kind) if hasattr(row, each.name)}


def _owner(key: JobKey) -> dict[str, Any]:
    return {"job": key.text}


def _life(life: Life) -> dict[str, Any]:
    return {"restarts": life.restarts, "submitted_s": life.submitted_s}
