"""From what was observed to what is decided: new watches, pins, intents and remarks, all as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.checkpoint_choice import best_smoothed, k_before
from evalstopd.core.corroborate import Agreed, Claimed, NoLog, OwnerLog, contradicted, corroborated, worth_waiting
from evalstopd.core.curve import best
from evalstopd.core.detectors import Declining, KeepGoing, Stop, Verdict, fold
from evalstopd.core.early import told_s, warned
from evalstopd.core.identity import Sighting
from evalstopd.core.intent import Evidence, Intent, WouldBeStop
from evalstopd.core.model import Eval, JobKey, JobView, Point, Rung
from evalstopd.core.rules import Standing, make_detector, reckons_with_noise
from evalstopd.core.watch import Pin, PinState, Terms, Watch
from evalstopd.core.wishes import Wishes

VIEW = JobView("", 0.0, 0)
"""What the rules that judge real jobs see of one: nothing but its evals."""


@dataclass(frozen=True, slots=True)
class Case:
    """One job whose run was read in this pass, with all that its judgement needs.

    `points` are those of the present life behind its evals. `log` is what the owner's own training log has, where it
    was asked for: of a job that is about to be stopped and is held by the ceiling of an open server, or lifted above it
    by nothing but its owner's word. `verdicts` are those on the evals from `first_asked` on, where the curve was folded
    already.
    """

    sighting: Sighting
    watch: Watch
    standing: Standing
    wishes: Wishes
    evals: tuple[Eval, ...]
    proof: str
    points: tuple[Point, ...] = ()
    log: OwnerLog | NoLog | None = None
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What was decided before for the present lives.

    `triggered` has the newest step at which an intent was triggered, `booked` the would-be stops.
    """

    pins: Mapping[JobKey, Sequence[Pin]]
    open_intents: Mapping[JobKey, Intent]
    triggered: Mapping[JobKey, int]
    booked: frozenset[JobKey]
    killed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What this pass decided. Nothing of it has been done yet. `warned` are watches with a new early warning.

    `doubts` are the jobs whose owner's log does not bear out the stop, and why; `borne_out` those whose owner's log
    spoke against an open stop, and bears it out by now.
    """

    watches: tuple[Watch, ...] = ()
    pins: tuple[Pin, ...] = ()
    intents: tuple[Intent, ...] = ()
    would_be: tuple[WouldBeStop, ...] = ()
    warned: tuple[Watch, ...] = ()
    doubts: tuple[tuple[JobKey, str], ...] = ()
    borne_out: tuple[JobKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every decision carries so that it can be judged later."""

    now_s: float
    settings_hash: str
    version: str


def plan(cases: Sequence[Case], known: Known, stamp: Stamp) -> Plan:
    """Judge every case by its own rule; deterministic, each job for itself."""
    judged = [_judge(case, known, stamp) for case in cases]
    return Plan(
        watches=tuple(each.watch for each in judged),
        pins=tuple(pin for each in judged for pin in each.pins),
        intents=tuple(each.intent for each in judged if each.intent is not None),
        would_be=tuple(each.would_be for each in judged if each.would_be is not None),
        warned=tuple(each.watch for each in judged if each.early),
        doubts=tuple((each.watch.key, each.doubt) for each in judged if each.doubt),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    watch: Watch
    pins: tuple[Pin, ...] = ()
    intent: Intent | None = None
    would_be: WouldBeStop | None = None
    early: bool = False
    doubt: str = ""


def verdicts(evals: Sequence[Eval], terms: Terms, since: int = 0) -> tuple[Verdict, ...]:
    """Return the verdict after each eval of a curve under a job's terms, from the place `since` on."""
    return fold(make_detector(terms), VIEW, evals, since)


def declines(verdict: Verdict) -> int:
    """Return the decline counter that a verdict stands for."""
    match verdict:
        case KeepGoing():
            return 0
        case Declining(count=count) | Stop(count=count):
            return count


# Verdicts by the place of their eval on the curve.
_Answers = Mapping[int, Verdict]


def _judge(case: Case, known: Known, stamp: Stamp) -> _Judged:
    if not case.evals:
        return _Judged(case.watch)
    answers = _answers(case, stamp.now_s)
    newest = answers[len(case.evals) - 1]
    watch = renewed(case.watch, case.evals, case.standing.terms, newest)
    pins = _wanted_pin(case, watch, known.pins.get(watch.key, ()), stamp.now_s)
    stops = _stops(case, answers, watch, known)
    at = _trigger(case, stops, stamp.now_s)
    if at is None:
        near = _early(case, watch, newest, known, stamp.now_s)
        return _Judged(near or watch, pins, early=near is not None)
    return _weighed(case, answers, stops, at, _Judged(watch, pins), known, stamp)


def _weighed(
    case: Case, answers: _Answers, stops: Sequence[int], at: int, judged: _Judged, known: Known, stamp: Stamp
) -> _Judged:
    """Return the judgement with the stop at a place of the curve, held against the owner's log where that was read."""
    if case.log is None:
        return _decided(case, answers, _Place(at), judged, known, stamp)
    if case.standing.by_word:
        against = contradicted(case.log, Claimed(case.evals[: at + 1], case.points, case.standing.terms))
        one, judged = _lowered(case, judged, against) if against else (case, judged)
        return _decided(one, answers, _Place(at, contradicted=against), judged, known, stamp)
    found = corroborated(case.log, Claimed(case.evals, case.points, case.standing.terms), stops)
    if isinstance(found, Agreed):
        lifted = replace(case, standing=Standing(replace(case.standing.terms, rung=Rung.ENFORCE), found.proof))
        return _decided(lifted, answers, _Place(found.at, found.proof), judged, known, stamp)
    if found.later and worth_waiting(case.evals, stops, stamp.now_s):
        return judged
    return _decided(case, answers, _Place(at), replace(judged, doubt=found.why), known, stamp)


def _lowered(case: Case, judged: _Judged, against: str) -> tuple[Case, _Judged]:
    """Return a job as one that is only warned of."""
    lowered = case.standing.at_most(Rung.WARN, against)
    return replace(case, standing=lowered), replace(judged, watch=replace(judged.watch, rung_now=lowered.terms.rung))


def _answers(case: Case, now_s: float) -> _Answers:
    """Return the verdicts that a stop may be decided on: those on the evals of this reading, else on the newest.

    An owner's log may end before these: with it go the verdicts on all.
    """
    since = 0 if case.log is not None else first_asked(case.evals, now_s)
    folded = case.verdicts if case.log is None else ()
    return dict(enumerate(folded or verdicts(case.evals, case.standing.terms, since), since))


def first_asked(evals: Sequence[Eval], now_s: float) -> int:
    """Return the place of the first eval that this reading brought, else of the newest."""
    return next((at for at, each in enumerate(evals) if each.arrived_s == now_s), len(evals) - 1)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where on the curve a stop is decided; by which log of the owner's the ceiling is lifted for it, if it is.

    Or what in that log speaks against it.
    """

    at: int
    corroborated: str = ""
    contradicted: str = ""


def _decided(case: Case, answers: _Answers, place: _Place, judged: _Judged, known: Known, stamp: Stamp) -> _Judged:
    """Return the judgement with the stop that is decided at a place of the curve, or would be."""
    stop, watch = answers[place.at], judged.watch
    if not isinstance(stop, Stop):
        return judged
    seen = replace(case, evals=case.evals[: place.at + 1])
    then = renewed(watch, seen.evals, case.standing.terms, stop)
    evidence = _evidence(seen, then, stop, _chosen(seen, known.pins.get(watch.key, ())), stamp)
    evidence = replace(evidence, corroborated=place.corroborated, contradicted=place.contradicted)
    if case.standing.terms.rung is Rung.OBSERVE:
        return replace(judged, would_be=_would_be(case, evidence, stamp))
    return replace(judged, intent=_intent(case, watch, evidence, known, stamp))


def _would_be(case: Case, evidence: Evidence, stamp: Stamp) -> WouldBeStop:
    return WouldBeStop(case.watch.key, case.watch.life, stamp.now_s, evidence, case.standing.wished)


def renewed(watch: Watch, evals: Sequence[Eval], terms: Terms, last: Verdict) -> Watch:
    """Return the watch with what is shown of its curve brought up to date."""
    top = best(evals, terms.mode)
    newest = evals[-1]
    return replace(
        watch,
        evals=len(evals),
        declines=declines(last),
        last_step=newest.step,
        last_score=newest.score,
        last_life=newest.life,
        best_step=top.step if top else None,
        best_score=top.score if top else None,
        best_life=top.life if top else 0,
        rung_now=terms.rung,
        rule_now=terms.rule,
        metric_now=terms.metric,
        mode_now=terms.mode,
        dataset_now=terms.dataset,
    )


def _wanted_pin(case: Case, watch: Watch, held: Sequence[Pin], now_s: float) -> tuple[Pin, ...]:
    """From the warn rung up each new best is pinned as it appears: trainers rotate checkpoints away."""
    rung = case.standing.terms.rung
    if rung < Rung.WARN or watch.best_step is None or watch.best_score is None:
        return ()
    earlier = next((pin for pin in held if pin.step == watch.best_step), None)
    if earlier is not None and _is_of(earlier, watch):
        return ()
    since_s = _not_before(watch, earlier)
    wanted = Pin(watch.key, watch.best_step, watch.best_score, PinState.WANTED, now_s, watch.best_life, since_s)
    if earlier is None or earlier.state is PinState.LOGGED:
        return (wanted,)
    there = {name: getattr(earlier, name) for name in ("path", "files", "size", "manifest")}
    return (replace(wanted, state=PinState.OUTDATED, **there),)


def _is_of(pin: Pin, watch: Watch) -> bool:
    """Tell whether a pin of the best step is of the best eval; one that is safe also where it was said once more."""
    return pin.score == watch.best_score and (pin.restarts == watch.best_life or pin.safe)


def _not_before(watch: Watch, earlier: Pin | None) -> float:
    """Return the time before which a checkpoint of the best step's name was another one's.

    A step of this life was saved in this life; one that the life evaluated anew, after its first pin was wanted.
    What the job only read when it started (history) may be as old as it is.
    """
    if watch.best_life != watch.life.restarts:
        return 0.0
    started_s = watch.started_s or 0.0
    anew = earlier is not None and earlier.restarts == watch.best_life
    return max(started_s, earlier.wanted_s) if earlier is not None and anew else started_s


def _stops(case: Case, answers: _Answers, watch: Watch, known: Known) -> tuple[int, ...]:
    """Return the places on the curve that a stop may be decided at.

    There the rule says so, the eval is of the present life, after an earlier trigger and, where anything would
    be done, not surpassed by a later best.
    """
    if not _may_trigger(case, watch, known):
        return ()
    observing = case.standing.terms.rung is Rung.OBSERVE
    earlier = None if observing else known.triggered.get(watch.key)
    least = None if observing else watch.best_step
    return tuple(
        at
        for at, answer in answers.items()
        if isinstance(answer, Stop)
        and (point := case.evals[at]).life == watch.life.restarts
        and (earlier is None or point.step > earlier)
        and (least is None or least <= point.step)
    )


def _trigger(case: Case, stops: Sequence[int], now_s: float) -> int | None:
    """Return the place of the eval that a stop is decided on.

    It is the first among the evals that this reading brought, or the newest eval: so that a slow poll decides what a
    fast one would have.
    """
    newest = len(case.evals) - 1
    return next((at for at in stops if case.evals[at].arrived_s == now_s or at == newest), None)


def _may_trigger(case: Case, watch: Watch, known: Known) -> bool:
    """Nothing is decided against a veto, under the kill switch, or beside an open intent.

    While the best checkpoint is lost, that is said once. A would-be stop is booked once a life.
    """
    rung = case.standing.terms.rung
    if case.wishes.keep or rung is Rung.OFF:
        return False
    if rung is Rung.OBSERVE:
        return watch.key not in known.booked
    if watch.key in known.open_intents or known.killed:
        return False
    counts = case.standing.terms.logged_models
    pins = known.pins.get(watch.key, ())
    lost = any(pin.step == watch.best_step and pin.is_lost(logged_models=counts) for pin in pins)
    return not (lost and watch.key in known.triggered)


def _early(case: Case, watch: Watch, newest: Verdict, known: Known, now_s: float) -> Watch | None:
    """Return the watch with an early warning, if its owner is to be told; never beside or after a decided stop."""
    quiet = case.wishes.keep or known.killed or watch.key in known.open_intents or watch.key in known.triggered
    return None if quiet else warned(watch, case.standing.terms, newest, now_s)


def _chosen(case: Case, pins: Sequence[Pin]) -> int | None:
    """Return the step with the best smoothed score of the maximum and the pins that hold; None if blind to noise.

    So another checkpoint is kept than the maximum's only where it is better, never for want of the maximum's pin. A
    pin counts only for the eval that it was made for: of its life, with its score.
    """
    terms = case.standing.terms
    if not reckons_with_noise(terms):
        return None
    made_for = {each.step: (each.life, each.score) for each in case.evals}
    safe = {
        pin.step
        for pin in pins
        if pin.holds(logged_models=terms.logged_models) and made_for.get(pin.step) == (pin.restarts, pin.score)
    }
    top = best(case.evals, terms.mode)
    found = best_smoothed(case.evals, terms.mode, safe | {top.step} if top is not None else safe)
    return found.step if found is not None else None


def _evidence(case: Case, watch: Watch, stop: Stop, chosen_step: int | None, stamp: Stamp) -> Evidence:
    terms = case.standing.terms
    before = k_before(case.evals, stop.count)
    return Evidence(
        rule=terms.rule,
        metric=terms.metric,
        mode=terms.mode.value,
        run_id=watch.run_id or "",
        proof=case.proof,
        two_way=watch.two_way,
        steps=tuple(each.step for each in case.evals),
        scores=tuple(each.score for each in case.evals),
        trigger_step=case.evals[-1].step,
        best_step=watch.best_step if watch.best_step is not None else case.evals[-1].step,
        best_score=watch.best_score if watch.best_score is not None else case.evals[-1].score,
        k_before_step=before.step if before is not None else None,
        declines=stop.count,
        reason=reason(stop, watch),
        settings_hash=stamp.settings_hash,
        version=stamp.version,
        chosen_step=chosen_step,
        stderrs=_stderrs(case.evals),
        dataset=terms.dataset,
    )


def _stderrs(evals: Sequence[Eval]) -> tuple[float | None, ...]:
    return tuple(each.stderr for each in evals) if any(each.stderr is not None for each in evals) else ()


def reason(stop: Stop, watch: Watch) -> str:
    """Return why a job is stopped: the rule's words, and from where to where its score went."""
    return (
        f"{stop.reason}, from the best {watch.best_score:.6g} at step {watch.best_step} "
        f"to {watch.last_score:.6g} at step {watch.last_step}"
    )


def _intent(case: Case, watch: Watch, evidence: Evidence, known: Known, stamp: Stamp) -> Intent:
    """Return the intent of a stop.

    Its notice runs from the telling of an early warning that still stands; that serves one intent, for of any
    later one the owner is told anew, as he is of what his own log contradicts.
    """
    terms = case.standing.terms
    told = None if watch.key in known.triggered or evidence.contradicted else told_s(watch, terms)
    noticed_s = stamp.now_s if told is None else min(told, stamp.now_s)
    return Intent(
        key=watch.key,
        life=watch.life,
        rung=terms.rung,
        evidence=evidence,
        created_s=stamp.now_s,
        not_before_s=max(stamp.now_s, noticed_s + terms.notice_s),
        changed_s=stamp.now_s,
        signal=case.wishes.signal,
        user=case.sighting.job.user,
        nodes=case.sighting.job.nodes,
        gpus=case.sighting.job.gpus,
        told_s=told,
        account=case.sighting.job.account,
        action=case.standing.terms.action,
    )
