"""What every store agrees on: the order of answers, and when an intent or an event may be written."""

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from evalstopd.core.caps import BreakerTurn, Decision
from evalstopd.core.credit import Credit
from evalstopd.core.intent import TRANSITIONS, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey, Point
from evalstopd.core.preempt import Preemption
from evalstopd.core.shift import Shift
from evalstopd.core.watch import Lived, Pin, PinState, Remark, Watch
from evalstopd.errors import Rejected

T = TypeVar("T")
RECENT_CLOSED = 50
SITE = "site"
GIVEN_UP = (State.VETOED, State.ABANDONED)
ON_DISK = (PinState.PINNED, PinState.PUBLISHED, PinState.OUTDATED, PinState.STALE)
UNHEARD_S = 7 * 86_400.0
STOPPED = (State.HELD, State.CONFIRMED, State.UNDONE)


def gone_s(watch: Watch) -> float:
    """Return when an ended job left the queue; when it was first seen, where that is not known."""
    return watch.vanished_s if watch.vanished_s is not None else watch.first_s


def in_key_order(watches: Iterable[Watch]) -> tuple[Watch, ...]:
    """Return watches by their keys."""
    return tuple(sorted(watches, key=lambda each: _key(each.key)))


def newest_watches(watches: Iterable[Watch]) -> tuple[Watch, ...]:
    """Return watches by when their jobs were first seen, the latest first."""
    return tuple(sorted(watches, key=lambda each: (each.first_s, _key(each.key)), reverse=True))


def in_step_order(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return pins by job and step."""
    return tuple(sorted(pins, key=lambda each: (_key(each.key), each.step)))


def newest_pins(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return pins by when they were wanted, the latest first."""
    return tuple(sorted(pins, key=lambda each: (each.wanted_s, each.step, _key(each.key)), reverse=True))


def oldest_intents(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Return intents by their creation."""
    return tuple(sorted(intents, key=lambda each: (each.created_s, each.id)))


def newest_intents(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Return intents by their creation, the latest first."""
    return oldest_intents(intents)[::-1]


def newest_would_be(stops: Iterable[WouldBeStop]) -> tuple[WouldBeStop, ...]:
    """Return would-be stops, the latest first."""
    return tuple(sorted(stops, key=lambda each: (each.at_s, _key(each.key), each.life), reverse=True))


def oldest_would_be(stops: Iterable[WouldBeStop]) -> tuple[WouldBeStop, ...]:
    """Return would-be stops, the latest last."""
    return newest_would_be(stops)[::-1]


def in_life_order(lives: Iterable[Lived]) -> tuple[Lived, ...]:
    """Return lives by job and life."""
    return tuple(sorted(lives, key=lambda each: (_key(each.key), each.life)))


def oldest_decisions(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return decisions by when they were made."""
    return tuple(sorted(decisions, key=lambda each: (each.at_s, _key(each.key), each.gpus)))


def in_scope_order(turns: Iterable[BreakerTurn]) -> tuple[BreakerTurn, ...]:
    """Return breakers' turns by cluster and scope."""
    return tuple(sorted(turns, key=lambda each: (each.cluster, each.scope)))


def oldest_preemptions(asked: Iterable[Preemption]) -> tuple[Preemption, ...]:
    """Return preemptions by when they were asked for."""
    return tuple(sorted(asked, key=lambda each: (each.at_s, _key(each.key), each.life)))


def in_job_order(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    """Return moved jobs by their keys."""
    return tuple(sorted(shifts, key=lambda each: _key(each.key)))


def newest_credits(booked: Iterable[Credit]) -> tuple[Credit, ...]:
    """Return credits, the latest first."""
    return tuple(sorted(booked, key=lambda each: (each.at_s, each.intent_id), reverse=True))


def newest_remarks(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return remarks, given in the order they were written, the latest first."""
    return tuple(sorted(remarks, key=lambda each: each.at_s)[::-1])


def in_event_order(events: Iterable[IntentEvent], intent_ids: Sequence[str]) -> tuple[IntentEvent, ...]:
    """Return events intent by intent, as these were asked for, each intent's by their number."""
    place = {intent_id: number for number, intent_id in enumerate(dict.fromkeys(intent_ids))}
    return tuple(sorted(events, key=lambda each: (place[each.intent_id], each.seq)))


def in_point_order(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return points by life, step and the client's time."""
    return tuple(sorted(points, key=point_identity))


def point_identity(point: Point) -> tuple[int, int, int, str, str, str, str]:
    """Return what makes a point of a job another one; two NaNs are the same value."""
    return (
        point.life,
        point.step,
        point.timestamp_ms,
        point.run_id,
        point.metric,
        point.dataset,
        repr(float(point.value)),
    )


def check_move(intent: Intent, stored: State | None) -> None:
    """Raise Rejected where the store has an intent in a state that cannot lead to the new one.

    That is a lost race: another daemon moved it meanwhile. Only this writing is refused; the next pass reads
    the book again and goes on from what is so.
    """
    if stored not in (None, intent.state) and intent.state not in TRANSITIONS[State(stored)]:
        raise Rejected(f"another daemon changed intent {intent.id!a} to {stored}; it cannot become {intent.state}")


def check_read(cluster: str, since_s: float | None, stored_s: float | None) -> None:
    """Raise Rejected where accounting has been read to another moment than who writes believes."""
    if stored_s != since_s:
        raise Rejected(f"another daemon read the accounting of {cluster!a} up to {stored_s}, not {since_s}")


def check_event(event: IntentEvent, stored: IntentEvent | None) -> None:
    """Raise Rejected for another event under the same number."""
    if stored not in (None, event):
        raise Rejected(f"another daemon wrote event {event.seq} of intent {event.intent_id!a}")


def check_intent_known(event: IntentEvent, *, known: bool) -> None:
    """Raise Rejected for an event of an intent that the store does not have."""
    if not known:
        raise Rejected(f"there is no intent {event.intent_id!a} that event {event.seq} could belong to")


def unknown(items: Iterable[T], name: Callable[[T], Hashable], known: Container[Any]) -> list[T]:
    """Return the items whose name is not known yet, of several with one name the first."""
    found: dict[Hashable, T] = {}
    for each in items:
        if name(each) not in known:
            found.setdefault(name(each), each)
    return list(found.values())


def _key(key: JobKey) -> tuple[str, str, int, int]:
    return (key.cluster, key.job_id, key.uid, key.submitted_s)
