"""Decide and record: from one observation to one transaction, each job for itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from evalstopd.core.again import Kind, Return, begun_again
from evalstopd.core.binding import Binding, Bound, Refused
from evalstopd.core.caps import SITE, BreakerTurn, Decision, held_by
from evalstopd.core.corroborate import Claimed, NoLog, OwnerLog, borne_out
from evalstopd.core.curve import curve
from evalstopd.core.due import after_read
from evalstopd.core.guards import Caution, proxy_alarm
from evalstopd.core.intent import Evidence, Intent, IntentEvent
from evalstopd.core.missing import is_time
from evalstopd.core.model import JobKey, Point, Rung, is_score
from evalstopd.core.output import output_dir
from evalstopd.core.plan import Case, Known, Plan, Stamp, first_asked, plan, renewed, verdicts
from evalstopd.core.rules import Rules
from evalstopd.core.watch import Pin, Remark, Watch, in_effect
from evalstopd.core.words import QUARANTINED, REFUSED
from evalstopd.errors import EvalstopError, PastCaps, Rejected
from evalstopd.loop.arrivals import Arrivals, arrivals, life_of
from evalstopd.loop.folds import Ask, Folds, is_long
from evalstopd.loop.observe import Observation
from evalstopd.loop.report import Tally
from evalstopd.loop.telling import early_remark
from evalstopd.loop.watched import Seen
from evalstopd.ports import Book, Changes, EndingQuery, RunReading


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one pass decided: the changes to record, and the plan inside them for the acts that follow.

    `cases` are the jobs with an open stop as they were judged; `back` those of them whose training began again since,
    or may have, at a step that was decided on. `postponed` are those whose curve is not folded to its end yet.
    """

    changes: Changes
    plan: Plan
    cases: Mapping[JobKey, Case] = field(default_factory=dict)
    back: Mapping[JobKey, Return] = field(default_factory=dict)
    postponed: AbstractSet[JobKey] = frozenset()

    @property
    def decided(self) -> list[tuple[JobKey, Evidence]]:
        """Return the jobs that would be or are to be stopped, with the evidence."""
        stops = [(intent.key, intent.evidence) for intent in self.plan.intents]
        return stops + [(stop.key, stop.evidence) for stop in self.plan.would_be]


def judge(
    seen: Observation,
    book: Book,
    stored: Mapping[JobKey, Sequence[Point]],
    stamp: Stamp,
    tally: Tally,
    ask: Callable[[Case], OwnerLog | NoLog],
    folds: Folds | None = None,
) -> Judgement:
    """Judge every job that was read well; remark once on every one that could not be.

    `ask` tells what a job's owner has logged. Without `folds` every curve is folded to its end.
    """
    bench = _Bench(seen, _known(book, killed=seen.killed), stored, stamp, ask)
    bound = {key: each for key in seen.readings if isinstance(each := seen.decisions[key], Bound)}
    judged, long = bench.judge_short(bound, in_slices=folds is not None)
    ready = [*_folded(long, folds, stamp.now_s)] if folds is not None else []
    judged += [bench.judge(each) for each in ready]
    postponed = {each.one.key for each in long} - {each.one.key for each in ready}
    tally.add("judged in parts", len(postponed))
    closed = [_close(each, seen.last[each.key], stored, stamp.now_s) for each in book.watches if each.key in seen.last]
    merged = _merge(each.plan for each in judged)
    refused = _unsaid([*_refusals(seen, stamp.now_s), *(line for each in judged for line in each.faults)], book)
    noted = _unsaid([line for each in judged for line in each.notes], book)
    _count(tally, merged, sum(each.new for each in judged), refused)
    watches = {watch.key: watch for watch in (*merged.watches, *(watch for watch, _ in closed))}
    points = [point for each in judged for point in each.points]
    changes = Changes(
        watches=_settle(seen, book, watches, stamp.now_s),
        points=(*points, *((watch.key, point) for watch, new in closed for point in new)),
        pins=merged.pins,
        intents=merged.intents,
        events=tuple(map(_planned, merged.intents)),
        would_be=merged.would_be,
        bindings=tuple(each.binding for each in judged if each.binding is not None),
        remarks=(*refused, *noted, *(early_remark(watch, stamp.now_s) for watch in merged.warned)),
    )
    cases = {one.watch.key: one for each in judged if (one := each.stopping) is not None}
    back = dict(_going_back(cases, bench.known.open_intents))
    return Judgement(changes, merged, cases, back, postponed)


def _going_back(cases: Mapping[JobKey, Case], opened: Mapping[JobKey, Intent]) -> Iterator[tuple[JobKey, Return]]:
    """Yield where the training of a job with an open stop began again, or may have, since that was decided."""
    for key, case in cases.items():
        intent = opened.get(key)
        back = None if intent is None else _back(case.points, intent)
        if back is not None:
            yield key, back


def _back(points: Sequence[Point], intent: Intent) -> Return | None:
    """Return it, of a job's points of the present life: in the run that was decided on, or in one that came since."""
    run_id, since_s, up_to = intent.evidence.run_id, intent.created_s, intent.evidence.trigger_step
    scores = [each for each in points if is_score(each.value)]
    others = [each.step for each in scores if each.run_id != run_id and each.arrived_s > since_s]
    if others and min(others) <= up_to:
        return Return(Kind.RESTART, min(others), 0, 0)
    return begun_again((each for each in scores if each.run_id == run_id), since_s, up_to)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What came of one job: `new` counts the evals that arrived, `faults` is what kept it from being judged.

    `stopping` is the job as it was judged, where a stop of it is open.
    """

    stopping: Case | None
    plan: Plan
    points: tuple[tuple[JobKey, Point], ...]
    new: int
    binding: Binding | None
    notes: tuple[Remark, ...]
    faults: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class _Laid:
    """One job with its curve, not judged yet."""

    one: Seen
    bound: Bound
    read: Arrivals
    case: Case


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all jobs of a pass are judged with."""

    seen: Observation
    known: Known
    stored: Mapping[JobKey, Sequence[Point]]
    stamp: Stamp
    ask: Callable[[Case], OwnerLog | NoLog]

    def judge_short(self, bound: Mapping[JobKey, Bound], *, in_slices: bool) -> tuple[list[_Judged], list[_Laid]]:
        """Judge the jobs, one after the other so that no two curves are held; return those with long curves apart."""
        judged: list[_Judged] = []
        long: list[_Laid] = []
        for key, each in bound.items():
            laid = self.lay(key, each)
            if in_slices and is_long(laid.case.evals):
                long.append(laid)
            else:
                judged.append(self.judge(laid))
        return judged, long

    def lay(self, key: JobKey, bound: Bound) -> _Laid:
        """Make one job's curve of what was read of the run that it is bound to."""
        one, reading, now_s = self.seen.seen[key], self.seen.readings[key], self.stamp.now_s
        one = _as_read(one, reading)
        life = life_of(one.watch, bound)
        read = arrivals(one.standing.terms, life, reading, self.stored.get(key, ()), now_s)
        case = _case(one, bound, reading, read, now_s=now_s, rules=self.seen.rules)
        return _Laid(one, bound, read, case)

    def judge(self, laid: _Laid) -> _Judged:
        """Judge one job by its curve."""
        one, bound, read, now_s = laid.one, laid.bound, laid.read, self.stamp.now_s
        key, reading = one.key, self.seen.readings[one.key]
        case, made, faults = self._plan(laid.case)
        notes = [*_notes(key, self.seen.cautions.get(key, ()), reading, case, now_s)]
        notes += [*_breaker_note(one, self.seen, now_s), *_doubts(made, now_s)]
        points = tuple((key, point) for point in (*read.new, *read.completed))
        stopping = case if made.intents or key in self.known.open_intents else None
        return _Judged(stopping, made, points, len(read.new), _binding(one.watch, bound, now_s), tuple(notes), faults)

    def _plan(self, case: Case) -> tuple[Case, Plan, tuple[Remark, ...]]:
        """Plan one job; whatever breaks in it must not cost the others their pass.

        The owner's log is only asked for where a stop hangs on it; it is in the case then.
        """
        try:
            made = plan([case], self.known, self.stamp)
            if made.intents and (case.standing.ceiling or case.standing.by_word):
                case = replace(case, log=self.ask(case))
                made = plan([case], self.known, self.stamp)
            elif self._is_borne_out(case):
                made = replace(made, borne_out=(case.watch.key,))
        except Exception as error:  # noqa: BLE001  a rule's own fault is isolated here and reported
            text = f"the job could not be judged: {type(error).__name__}: {error}"
            fault = Remark(case.watch.key.text, "not-judged", text, self.stamp.now_s)
            return case, Plan(watches=(case.watch,)), (fault,)
        return case, made, ()

    def _is_borne_out(self, case: Case) -> bool:
        """Tell whether the owner's log bears out by now what it spoke against; it is asked for ever more rarely."""
        intent = self.known.open_intents.get(case.watch.key)
        if intent is None or not intent.evidence.contradicted or case.wishes.rung is not Rung.ENFORCE:
            return False
        if not is_time(intent.id, intent.created_s, self.stamp.now_s, self.seen.rules.tick_s):
            return False
        # As the run shows them by now: an owner may have put right what a stranger logged.
        evals = [each for each in case.evals if each.step <= intent.evidence.trigger_step]
        return borne_out(self.ask(case), Claimed(evals, case.points, case.standing.terms))


def _folded(long: Sequence[_Laid], folds: Folds, now_s: float) -> Iterator[_Laid]:
    """Yield the jobs with long curves that can be judged in this pass, with their verdicts."""
    found = folds.answers([_ask(each.case, now_s) for each in long]) if long else {}
    for each in long:
        if each.one.key in found:
            yield replace(each, case=replace(each.case, verdicts=found[each.one.key]))


def _ask(case: Case, now_s: float) -> Ask:
    return Ask(case.watch.key, case.standing.terms, case.evals, first_asked(case.evals, now_s))


def _planned(intent: Intent) -> IntentEvent:
    found = intent.evidence
    texts = (found.reason, found.corroborated, found.contradicted)
    return IntentEvent(intent.id, 0, intent.created_s, "planned", "; ".join(each for each in texts if each))


def _binding(watch: Watch, bound: Bound, now_s: float) -> Binding | None:
    """Return the binding where it is another one than before; that the run no longer names the job is none."""
    same = (watch.run_id, watch.proof) == (bound.run_id, bound.proof)
    if same and (watch.two_way or not bound.two_way):
        return None
    return Binding(watch.key, bound.run_id, bound.proof.value, bound.two_way, now_s)


def _doubts(made: Plan, now_s: float) -> Iterable[Remark]:
    for key, why in made.doubts:
        yield Remark(key.text, "not-corroborated", f"only warned of, on an open server: {why}", now_s)
    for intent in made.intents:
        if intent.evidence.contradicted:
            text = f"only warned of, although its owner asked for enforce: {intent.evidence.contradicted}"
            yield Remark(intent.key.text, "contradicted", text, now_s)


def decided_now(judgement: Judgement, seen: Observation, now_s: float) -> list[Decision]:
    """Return what this pass decided, as caps and breakers count it; a would-be stop frees no GPUs."""
    made = judgement.plan
    stops = [(each.key, each.gpus, False, each.rung) for each in made.intents]
    stops += [(each.key, 0, each.wished, Rung.OBSERVE) for each in made.would_be]
    return [
        Decision(key, seen.seen[key].watch.account, gpus, now_s, None, wished, rung)
        for key, gpus, wished, rung in stops
    ]


def with_trips(changes: Changes, tripped: Sequence[BreakerTurn]) -> Changes:
    """Return the changes with breakers that trip, and a line on each for the report."""
    said = (Remark(SITE, f"breaker {each.scope} {each.at_s:.0f}", each.text, each.at_s) for each in tripped)
    return replace(changes, breakers=tuple(tripped), remarks=(*changes.remarks, *said))


def _known(book: Book, *, killed: bool) -> Known:
    pins: dict[JobKey, list[Pin]] = {}
    for pin in book.pins:
        pins.setdefault(pin.key, []).append(pin)
    open_intents: dict[JobKey, Intent] = {each.key: each for each in book.intents if not each.closed}
    return Known(pins, open_intents, book.triggered, book.booked, killed)


def _as_read(one: Seen, reading: RunReading) -> Seen:
    """Return the job with the dataset in its terms whose points were told apart: none where they were not."""
    standing = one.standing
    if standing.terms.dataset == reading.dataset:
        return one
    return replace(one, standing=replace(standing, terms=replace(standing.terms, dataset=reading.dataset)))


def _case(one: Seen, bound: Bound, reading: RunReading, read: Arrivals, *, now_s: float, rules: Rules) -> Case:
    started_s = one.watch.started_s or one.watch.first_s
    watch = replace(
        one.watch,
        run_id=bound.run_id,
        two_way=bound.two_way,
        proof=bound.proof.value,
        read_life=one.watch.life.restarts,
        output_dir=output_dir(one.wishes, reading.facts, rules),
        reads=after_read(one.watch.reads, now_s, arrived=len(read.new), tick_s=rules.tick_s, started_s=started_s),
    )
    present = tuple(point for point in read.curve if point.life == watch.life.restarts)
    return Case(one.sighting, watch, one.standing, one.wishes, curve(read.curve), bound.proof.value, present)


def _close(
    watch: Watch, reading: RunReading, stored: Mapping[JobKey, Sequence[Point]], now_s: float
) -> tuple[Watch, tuple[Point, ...]]:
    """Return an ended job's watch with what it logged last, and those points; nothing is decided on them."""
    terms = in_effect(watch)
    if watch.rule_now and reading.dataset != terms.dataset:
        return watch, ()
    terms = replace(terms, dataset=reading.dataset)
    read = arrivals(terms, lambda _: watch.life.restarts, reading, stored.get(watch.key, ()), now_s)
    evals = curve(read.curve)
    if not read.new or not evals:
        return watch, ()
    return renewed(watch, evals, terms, verdicts(evals, terms, len(evals) - 1)[-1]), read.new


def _notes(key: JobKey, found: Sequence[Caution], reading: RunReading, case: Case, now_s: float) -> Iterable[Remark]:
    """Yield what speaks against judging the job by its metric, and the alarm; said once, no stop hangs on the alarm."""
    for each in found:
        yield Remark(key.text, each.code, f"only observed: {each.text}" if each.refuse else each.text, now_s)
    alarm = proxy_alarm(curve(reading.proxy), case.evals, case.standing.terms.mode)
    if alarm is not None:
        yield Remark(key.text, "proxy-alarm", alarm, now_s)


def _breaker_note(one: Seen, seen: Observation, now_s: float) -> Iterable[Remark]:
    held = held_by(one.watch.account, one.key.uid, seen.breakers)
    if held is not None:
        yield Remark(one.key.text, "breaker", f"only observed while a breaker holds: {held.text}", now_s)


def _unsaid(remarks: Iterable[Remark], book: Book) -> list[Remark]:
    return [remark for remark in remarks if (remark.subject, remark.code) not in book.said]


def _merge(plans: Iterable[Plan]) -> Plan:
    all_plans = tuple(plans)
    return Plan(
        watches=tuple(watch for each in all_plans for watch in each.watches),
        pins=tuple(pin for each in all_plans for pin in each.pins),
        intents=tuple(intent for each in all_plans for intent in each.intents),
        would_be=tuple(stop for each in all_plans for stop in each.would_be),
        warned=tuple(watch for each in all_plans for watch in each.warned),
        doubts=tuple(doubt for each in all_plans for doubt in each.doubts),
        borne_out=tuple(key for each in all_plans for key in each.borne_out),
    )


def _refusals(seen: Observation, now_s: float) -> Iterable[Remark]:
    """Yield one line for each job that nothing may be done with."""
    for key, one in seen.seen.items():
        found = _ours(one) or _of_the_run(seen.decisions.get(key), seen.unread.get(key)) or _of_the_metric(one, seen)
        if found is not None:
            code, why = found
            yield Remark(key.text, code, f"no action: {why}", now_s)


def _ours(one: Seen) -> tuple[str, str] | None:
    """Return code and reason where the job itself is the reason."""
    if one.wishes.faults:
        return "ambiguous-comment", one.wishes.faults[0]
    return ("het-job", one.standing.why) if one.job.het_id is not None else None


def _of_the_run(decision: Bound | Refused | None, error: EvalstopError | None) -> tuple[str, str] | None:
    """Return code and reason where the run is no proven one, or cannot be read."""
    if isinstance(decision, Refused):
        return decision.code, decision.text
    if isinstance(error, Rejected):
        return QUARANTINED if isinstance(error, PastCaps) else REFUSED, str(error)
    return None


def _of_the_metric(one: Seen, seen: Observation) -> tuple[str, str] | None:
    if one.key in seen.unclear:
        return "unclear-metric", seen.unclear[one.key].text
    if not seen.rules.names_metrics(one.standing.terms.metric):
        return "no-metric", "neither the owner nor the site names a metric"
    return None


def _settle(seen: Observation, book: Book, judged: Mapping[JobKey, Watch], now_s: float) -> tuple[Watch, ...]:
    """Return the watches that changed: judged, newly seen, moved, vanished or ended."""
    present = {key: judged.get(key, one.watch) for key, one in seen.seen.items()}
    known = {watch.key: watch for watch in book.watches}
    # Most are the very same object: comparing all fields of thousands takes longer than to decide.
    changed = [watch for key, watch in present.items() if (was := known.get(key)) is not watch and was != watch]
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
