"""What the listings show, as frozen rows: queries in, rows out; rendering is elsewhere."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evalstopd.core.credit import Credit
from evalstopd.core.curve import curve, series
from evalstopd.core.detectors import Declining, Stop, Verdict
from evalstopd.core.early import of_this_life
from evalstopd.core.intent import Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import Eval, JobKey, Rung
from evalstopd.core.noise import evals_to_see, of_evals, spread
from evalstopd.core.plan import verdicts
from evalstopd.core.preempt import YIELDED
from evalstopd.core.watch import Pin, Remark, Terms, Watch, in_effect
from evalstopd.core.withheld import may_withhold, withheld
from evalstopd.core.words import asked_in_vain, early_state, is_wait_code
from evalstopd.ports import Archive, Store


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One watched job in the overview. Scores in the metric's own unit; `credit` in GPU-hours, None without one.

    `dataset` is the one whose evals alone judge it, where its metric has those of several.
    """

    job: str
    user: str
    account: str
    rung: str
    run_id: str
    metric: str
    evals: int
    declines: int
    last_step: int | None
    last_score: float | None
    best_step: int | None
    best_score: float | None
    pinned: tuple[int, ...]
    state: str
    why: str
    handed_to: tuple[str, ...]
    credit: float | None = None
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class JudgedEval:
    """One eval of a curve and what the job's rule said after it."""

    step: int
    score: float
    life: int
    verdict: str
    stderr: float | None = None


@dataclass(frozen=True, slots=True)
class NoiseNote:
    """How noisy a job's evals are, in the metric's unit, and how many evals it takes to see a fall of `fall`.

    `fall` is a tenth of the curve's 5-95 % range.
    """

    noise: float
    fall: float
    evals: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of one job: its curve with the verdicts, and everything that was decided on it.

    `withheld` says why no stop is decided although the rule says stop; empty where it is not so.
    """

    watch: Watch
    terms: Terms
    evals: tuple[JudgedEval, ...]
    noise: NoiseNote | None
    pins: tuple[Pin, ...]
    intents: tuple[Intent, ...]
    events: tuple[IntentEvent, ...]
    would_be: tuple[WouldBeStop, ...]
    remarks: tuple[Remark, ...]
    credits: tuple[Credit, ...] = ()
    withheld: str = ""


def status_rows(archive: Archive, store: Store, limit: int) -> tuple[StatusRow, ...]:
    """Return the watched jobs seen last, with the newest intent of each."""
    watches = archive.recent(limit)
    keys = [watch.key for watch in watches]
    intents = archive.intents_of(keys)
    pins = archive.pins_of(keys)
    remarks = archive.remarks_of([key.text for key in keys])
    would_be = {stop.key: stop for stop in archive.would_be_of(keys)}
    on_history = _on_history(store, watches)
    rows = (
        _row(watch, intents, pins, remarks, would_be.get(watch.key), on_history.get(watch.key, "")) for watch in watches
    )
    booked = _booked(archive.credits_of(keys))
    return tuple(replace(row, credit=booked.get(watch.key)) for row, watch in zip(rows, watches, strict=True))


def _on_history(store: Store, watches: Sequence[Watch]) -> dict[JobKey, str]:
    """Return why stops are withheld; only the points of jobs that can be so are read."""
    asked = [watch for watch in watches if may_withhold(watch)]
    points = store.points([watch.key for watch in asked]) if asked else {}
    found: dict[JobKey, str] = {}
    for watch in asked:
        terms = in_effect(watch)
        evals = curve(series(points.get(watch.key, ()), terms.metric, terms.dataset))
        found[watch.key] = withheld(watch, evals, verdicts(evals, terms))
    return found


def _booked(given: Sequence[Credit]) -> dict[JobKey, float]:
    """Return the GPU-hours credited to each job."""
    return {key: sum(each.gpu_hours for each in given if each.key == key) for key in {each.key for each in given}}


def explain(archive: Archive, store: Store, job_id: str) -> Explanation | None:
    """Return what is known of the newest job with this id, or None."""
    found = archive.find(job_id)
    if not found:
        return None
    watch = found[0]
    keys = [watch.key]
    intents = archive.intents_of(keys)
    terms = in_effect(watch)
    points = store.points(keys).get(watch.key, ())
    evals = curve(series(points, terms.metric, terms.dataset))
    answers = verdicts(evals, terms)
    return Explanation(
        watch=watch,
        terms=terms,
        evals=_in_words(evals, answers),
        noise=noise_note(evals),
        pins=archive.pins_of(keys),
        intents=intents,
        events=archive.events_of([intent.id for intent in intents]),
        would_be=archive.would_be_of(keys),
        remarks=archive.remarks_of([watch.key.text]),
        credits=archive.credits_of(keys),
        withheld=withheld(watch, evals, answers),
    )


def _in_words(evals: Sequence[Eval], answers: Sequence[Verdict]) -> tuple[JudgedEval, ...]:
    return tuple(JudgedEval(e.step, e.score, e.life, _word(a), e.stderr) for e, a in zip(evals, answers, strict=True))


def noise_note(evals: Sequence[Eval]) -> NoiseNote | None:
    """Return what an owner is told of the noise of their evals; None while nothing is known of it."""
    noise = of_evals(evals)
    fall = spread([each.score for each in evals]) / 10 if evals else 0.0
    if not (0 < noise < math.inf and 0 < fall < math.inf):
        return None
    return NoiseNote(noise, fall, evals_to_see(fall, noise))


def _word(verdict: Verdict) -> str:
    match verdict:
        case Stop():
            return "stop"
        case Declining(count=count, of=of):
            return f"declining {count}/{of}"
        case _:
            return ""


def _row(
    watch: Watch,
    intents: Sequence[Intent],
    pins: Sequence[Pin],
    remarks: Sequence[Remark],
    would_be: WouldBeStop | None,
    on_history: str,
) -> StatusRow:
    intent = next((each for each in intents if each.key == watch.key), None)
    state, why = _state(watch, intent, would_be, [r for r in remarks if r.subject == watch.key.text])
    if state == "watched":
        why = on_history
    return StatusRow(
        job=watch.key.job_id,
        user=watch.user,
        account=watch.account,
        rung=in_effect(watch).rung.word,
        run_id=watch.run_id or "",
        metric=in_effect(watch).metric,
        dataset=watch.dataset_now,
        evals=watch.evals,
        declines=watch.declines,
        last_step=watch.last_step,
        last_score=watch.last_score,
        best_step=watch.best_step,
        best_score=watch.best_score,
        pinned=_pinned(watch.key, pins),
        state=state,
        why=why,
        handed_to=intent.handed_to if intent is not None else (),
    )


def _with_wait(intent: Intent, remarks: Sequence[Remark]) -> str:
    """Return why a job is to be stopped, and before that why it is not (yet): who or what holds it."""
    if intent.evidence.contradicted:
        return f"only warned of: {intent.evidence.contradicted}; {intent.evidence.reason}"
    if vain := asked_in_vain(intent):
        return f"{vain}; {intent.evidence.reason}"
    waits = (each for each in remarks if is_wait_code(each.code, intent))
    held = max(waits, key=lambda each: each.at_s, default=None)
    may_wait = intent.state is State.PROMOTED and intent.acted_s is None
    return f"{held.text}; {intent.evidence.reason}" if held is not None and may_wait else intent.evidence.reason


def _pinned(key: JobKey, pins: Sequence[Pin]) -> tuple[int, ...]:
    return tuple(sorted(pin.step for pin in pins if pin.key == key and pin.safe))


def _state(
    watch: Watch, intent: Intent | None, would_be: WouldBeStop | None, remarks: Sequence[Remark]
) -> tuple[str, str]:
    if intent is not None:
        given_up = intent.state in (State.VETOED, State.ABANDONED, State.UNDONE)
        word = "stopped" if intent.state is State.CONFIRMED else intent.state.value
        return word, intent.note if given_up else _with_wait(intent, remarks)
    if would_be is not None and in_effect(watch).rung is Rung.OBSERVE:
        return "would be stopped", would_be.evidence.reason
    if watch.ending is not None:
        return "ended", watch.ending.state
    refused = next((each for each in remarks if not each.code.startswith("early-warning")), None)
    if refused is not None and refused.at_s >= (watch.reads.good_s or 0.0):
        return YIELDED if refused.code == YIELDED else "refused", refused.text
    early = of_this_life(watch)
    return ("watched", "") if early is None else ("warned early", early_state(early))
