"""Decide and record: from one observation to one transaction, each job for itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.binding import Binding, Bound, Refused
from evalstopd.core.caps import SITE, BreakerTurn, Decision, held_by
from evalstopd.core.curve import curve
from evalstopd.core.due import after_read
from evalstopd.core.guards import Caution, proxy_alarm
from evalstopd.core.intent import Evidence, Intent, IntentEvent
from evalstopd.core.model import JobKey, Point
from evalstopd.core.output import output_dir
from evalstopd.core.plan import Case, Known, Plan, Stamp, plan, renewed, verdicts
from evalstopd.core.rules import Rules
from evalstopd.core.watch import Pin, Remark, Watch, in_effect
from evalstopd.errors import PastCaps, Rejected
from evalstopd.loop.observe import Observation
from evalstopd.loop.report import Tally
from evalstopd.loop.telling import early_remark
from evalstopd.loop.watched import Seen
from evalstopd.ports import Book, Changes, EndingQuery, RunReading


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one pass decided: the changes to record, and the plan inside them for the acts that follow."""

    changes: Changes
    plan: Plan

    @property
    def decided(self) -> list[tuple[JobKey, Evidence]]:
        """Return the jobs that would be or are to be stopped, with the evidence."""
        stops = [(intent.key, intent.evidence) for intent in self.plan.intents]
        return stops + [(stop.key, stop.evidence) for stop in self.plan.would_be]


def judge(
    seen: Observation, book: Book, stored: Mapping[JobKey, Sequence[Point]], rules: Rules, stamp: Stamp, tally: Tally
) -> Judgement:
    """Judge every job that was read well; remark once on every one that could not be."""
    known = _known(book, killed=seen.killed)
    plans: list[Plan] = []
    points: list[tuple[JobKey, Point]] = []
    bindings: list[Binding] = []
    remarks, notes, evals = list(_refusals(seen, stamp.now_s)), list[Remark](), 0
    for key, reading in seen.readings.items():
        one, bound = seen.seen[key], seen.decisions[key]
        if not isinstance(bound, Bound):
            continue
        life = _life_of(one.watch, bound)
        read = _merged(one.standing.terms.metric, life, reading, stored.get(key, ()), stamp.now_s)
        case = _case(one, bound, reading, read.curve, arrived=bool(read.new), now_s=stamp.now_s, rules=rules)
        points.extend((key, point) for point in (*read.new, *read.completed))
        evals += len(read.new)
        notes += _notes(key, seen.cautions.get(key, ()), reading, case, stamp.now_s)
        notes += _breaker_note(one, seen, stamp.now_s)
        if (one.watch.run_id, one.watch.two_way, one.watch.proof) != (bound.run_id, bound.two_way, bound.proof):
            bindings.append(Binding(key, bound.run_id, bound.proof.value, bound.two_way, stamp.now_s))
        plans.append(_alone(case, known, stamp, remarks))
    merged = _merge(plans)
    fresh, noted = (_unsaid(each, book) for each in (remarks, notes))
    _count(tally, merged, evals, fresh)
    closed = [
        _close(watch, seen.last[watch.key], stored, stamp.now_s) for watch in book.watches if watch.key in seen.last
    ]
    points.extend((watch.key, point) for watch, new in closed for point in new)
    judged = {watch.key: watch for watch in (*merged.watches, *(watch for watch, _ in closed))}
    watches = _settle(seen, book, judged, stamp.now_s)
    changes = Changes(
        watches=watches,
        points=tuple(points),
        pins=merged.pins,
        intents=merged.intents,
        events=tuple(IntentEvent(i.id, 0, stamp.now_s, "planned", i.evidence.reason) for i in merged.intents),
        would_be=merged.would_be,
        bindings=tuple(bindings),
        remarks=(*fresh, *noted, *(early_remark(watch, stamp.now_s) for watch in merged.warned)),
    )
    return Judgement(changes, merged)


def decided_now(judgement: Judgement, seen: Observation, now_s: float) -> list[Decision]:
    """Return what this pass decided, as caps and breakers count it; a would-be stop frees no GPUs."""
    gpus = {intent.key: intent.gpus for intent in judgement.plan.intents}
    return [Decision(key, seen.seen[key].watch.account, gpus.get(key, 0), now_s) for key, _ in judgement.decided]


def with_trips(changes: Changes, tripped: Sequence[BreakerTurn]) -> Changes:
    """Return the changes with breakers that trip, and a line on each for the report."""
    said = (Remark(SITE, f"breaker {each.scope} {each.at_s:.0f}", each.text, each.at_s) for each in tripped)
    return replace(changes, breakers=tuple(tripped), remarks=(*changes.remarks, *said))


def _known(book: Book, *, killed: bool) -> Known:
    pins: dict[JobKey, tuple[Pin, ...]] = {}
    for pin in book.pins:
        pins[pin.key] = (*pins.get(pin.key, ()), pin)
    open_intents: dict[JobKey, Intent] = {each.key: each for each in book.intents if not each.closed}
    return Known(pins, open_intents, book.triggered, book.booked, killed)


@dataclass(frozen=True, slots=True)
class _Merged:
    """A job's points after a reading: those that are new, and those held whose standard error came later."""

    curve: tuple[Point, ...]
    new: tuple[Point, ...]
    completed: tuple[Point, ...]


def _merged(
    metric: str, life: Callable[[Point], int], reading: RunReading, stored: Sequence[Point], now_s: float
) -> _Merged:
    """Return what arrived since the last reading, stamped with our time, its metric and the life it belongs to.

    Only the metric that judges the job is its curve. Points are compared by their text, so that a NaN equals itself.
    """
    read = {_identity(point): replace(point, metric=metric) for point in reading.points}
    known: dict[str, Point] = {}
    completed: list[Point] = []
    for point in (each for each in stored if each.metric == metric):
        same = read.get(_identity(point))
        if point.stderr is None and same is not None and same.stderr is not None:
            point = replace(point, stderr=same.stderr)  # noqa: PLW2901  the same point, with what was missing
            completed.append(point)
        known[_identity(point)] = point
    new = tuple(replace(p, life=life(p), arrived_s=now_s) for text, p in read.items() if text not in known)
    return _Merged((*known.values(), *new), new, tuple(completed))


def _life_of(watch: Watch, bound: Bound) -> Callable[[Point], int]:
    """Return which life a new point belongs to.

    What a run holds when a life first reads it is history: of the life before, or of an earlier job that logged to
    it. A job in its first life whose run nobody else had may have logged before we looked; its client's clock tells.
    """
    present, started_ms = watch.life.restarts, 1000 * (watch.started_s or 0.0)
    first_look = (watch.run_id, watch.read_life) != (bound.run_id, present)
    own = present == 0 and not bound.taken_over

    def life(point: Point) -> int:
        history = first_look and not (own and point.timestamp_ms >= started_ms)
        return present - 1 if history else present

    return life


def _identity(point: Point) -> str:
    return f"{point.run_id} {point.step} {point.timestamp_ms} {point.value!r}"


def _case(
    one: Seen,
    bound: Bound,
    reading: RunReading,
    points: Iterable[Point],
    *,
    arrived: bool,
    now_s: float,
    rules: Rules,
) -> Case:
    started_s = one.watch.started_s or one.watch.first_s
    watch = replace(
        one.watch,
        run_id=bound.run_id,
        two_way=bound.two_way,
        proof=bound.proof.value,
        read_life=one.watch.life.restarts,
        output_dir=output_dir(one.wishes, reading.facts, rules),
        reads=after_read(one.watch.reads, now_s, arrived=arrived, tick_s=rules.tick_s, started_s=started_s),
    )
    return Case(one.sighting, watch, one.standing, one.wishes, curve(points), bound.proof.value)


def _close(
    watch: Watch, reading: RunReading, stored: Mapping[JobKey, Sequence[Point]], now_s: float
) -> tuple[Watch, tuple[Point, ...]]:
    """Return an ended job's watch with what it logged last, and those points; nothing is decided on them."""
    terms = in_effect(watch)
    read = _merged(terms.metric, lambda _: watch.life.restarts, reading, stored.get(watch.key, ()), now_s)
    evals = curve(read.curve)
    if not read.new or not evals:
        return watch, ()
    return renewed(watch, evals, terms, verdicts(evals, terms)[-1]), read.new


def _notes(key: JobKey, found: Sequence[Caution], reading: RunReading, case: Case, now_s: float) -> Iterable[Remark]:
    """Yield what speaks against judging the job by its metric, and the alarm; said once, no stop hangs on the alarm."""
    for each in found:
        yield Remark(key.text, each.code, f"only observed: {each.text}" if each.refuse else each.text, now_s)
    alarm = proxy_alarm(curve(reading.proxy), case.evals, case.standing.terms.mode)
    if alarm is not None:
        yield Remark(key.text, "proxy-alarm", alarm, now_s)


def _breaker_note(one: Seen, seen: Observation, now_s: float) -> Iterable[Remark]:
    held = held_by(one.watch.account, seen.breakers)
    if held is not None:
        yield Remark(one.key.text, "breaker", f"only observed while a breaker holds: {held.text}", now_s)


def _unsaid(remarks: Iterable[Remark], book: Book) -> list[Remark]:
    return [remark for remark in remarks if (remark.subject, remark.code) not in book.said]


def _alone(case: Case, known: Known, stamp: Stamp, remarks: list[Remark]) -> Plan:
    """Judge one job; whatever breaks in it must not cost the others their pass."""
    try:
        return plan([case], known, stamp)
    except Exception as error:  # noqa: BLE001  a rule's own fault is isolated here and reported
        text = f"the job could not be judged: {type(error).__name__}: {error}"
        remarks.append(Remark(case.watch.key.text, "not-judged", text, stamp.now_s))
        return Plan(watches=(case.watch,))


def _merge(plans: Iterable[Plan]) -> Plan:
    all_plans = tuple(plans)
    return Plan(
        watches=tuple(watch for each in all_plans for watch in each.watches),
        pins=tuple(pin for each in all_plans for pin in each.pins),
        intents=tuple(intent for each in all_plans for intent in each.intents),
        would_be=tuple(stop for each in all_plans for stop in each.would_be),
        warned=tuple(watch for each in all_plans for watch in each.warned),
    )


def _refusals(seen: Observation, now_s: float) -> Iterable[Remark]:
    """Yield one line for each job that nothing may be done with."""
    for key, one in seen.seen.items():
        decision = seen.decisions.get(key)
        error = seen.unread.get(key)
        if one.wishes.faults:
            yield Remark(key.text, "ambiguous-comment", f"no action: {one.wishes.faults[0]}", now_s)
        elif isinstance(decision, Refused):
            yield Remark(key.text, decision.code, f"no action: {decision.text}", now_s)
        elif isinstance(error, PastCaps):
            yield Remark(key.text, "quarantine-run", f"no action: {error}", now_s)
        elif isinstance(error, Rejected):
            yield Remark(key.text, "run-refused", f"no action: {error}", now_s)
        elif key in seen.unclear:
            yield Remark(key.text, "unclear-metric", f"no action: {seen.unclear[key].text}", now_s)
        elif not seen.rules.names_metrics(one.standing.terms.metric):
            yield Remark(key.text, "no-metric", "no action: neither the owner nor the site names a metric", now_s)


def _settle(seen: Observation, book: Book, judged: Mapping[JobKey, Watch], now_s: float) -> tuple[Watch, ...]:
    """Return the watches that changed: judged, newly seen, moved, vanished or ended."""
    present = {key: judged.get(key, one.watch) for key, one in seen.seen.items()}
    known = {watch.key: watch for watch in book.watches}
    changed = [watch for key, watch in present.items() if known.get(key) != watch]
    here = {each.key for each in seen.sightings.values()}
    for watch in book.watches:
        if watch.key in here and watch.key not in present:
            continue
        ending = seen.endings.get(EndingQuery(watch.key.job_id, watch.life))
        if watch.key not in present and (ending is not None or watch.vanished_s is None):
            last = judged.get(watch.key, watch)
            changed.append(replace(last, ending=ending, vanished_s=watch.vanished_s or now_s))
    return tuple(changed)


def _count(tally: Tally, merged: Plan, evals: int, remarks: Sequence[Remark]) -> None:
    tally.add("evals", evals)
    tally.add("planned", len(merged.intents))
    tally.add("would be stopped", len(merged.would_be))
    tally.add("refused", len(remarks))
    stops = {*(each.key for each in merged.intents), *(each.key for each in merged.would_be)}
    for watch in merged.watches:
        going = "declining" if watch.declines else "keep going"
        tally.add(f"verdict: {'stop' if watch.key in stops else going}")
