"""One would-be stop and what its job then did: it went past its best, it did not, or it cannot be told."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalstopd.core.curve import best
from evalstopd.core.intent import Evidence, Intent, State, WouldBeStop
from evalstopd.core.model import Eval, Mode
from evalstopd.core.noise import of_evals, spread
from evalstopd.core.watch import Watch

_ENDED_BY_US = (State.SIGNALLED, State.CANCELLED, State.CONFIRMED)
_HOUR_S = 3600.0


class Fate(StrEnum):
    """What a would-be stop was worth; only RIGHT and WRONGED say something of the rule.

    WRONGED: the job got better than its best at the trigger. RIGHT: it was evaluated again, ended, and did not.
    UNTESTED: it ended without another eval. UNFINISHED: it still runs. STOPPED: it was stopped in earnest.
    """

    WRONGED = "wronged"
    RIGHT = "right"
    UNTESTED = "untested"
    UNFINISHED = "unfinished"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Decision:
    """The first stop that was decided on a job: only booked, warned of, vetoed, given up, or done."""

    at_s: float
    evidence: Evidence
    done: bool


@dataclass(frozen=True, slots=True)
class StopRow:
    """One would-be stop in the book. Scores and `noise` in the metric's unit.

    `best_after` is the best score later than the trigger, `lost` how far it lies above `best_before` as a share of
    the curve's 5-95 % range, at most 1. `gpu_hours` is what the job held from the would-be stop to its end, None
    where the end is not known; of a job that was requeued later only the last life counts, so it is a lower bound.
    """

    job: str
    user: str
    rule: str
    at_s: float
    trigger_step: int
    reason: str
    best_before: float
    best_after: float | None
    last_score: float
    noise: float
    evals_after: int
    lost: float
    gpu_hours: float | None
    ending: str
    fate: Fate


def first_decision(would_be: Sequence[WouldBeStop], intents: Sequence[Intent]) -> Decision | None:
    """Return the earliest stop decided on a job; `done` if any of its intents acted on it.

    A signal is an act, too: how a job that got one ends says nothing of the rule, whatever became of the stop.
    """
    done = any(each.state in _ENDED_BY_US or each.cancel_tries > 0 or each.acted_s is not None for each in intents)
    found = [(each.at_s, each.evidence) for each in would_be] + [(each.created_s, each.evidence) for each in intents]
    if not found:
        return None
    at_s, evidence = min(found, key=lambda each: each[0])
    return Decision(at_s, evidence, done)


def stop_row(watch: Watch, decision: Decision, evals: Sequence[Eval]) -> StopRow:
    """Return a would-be stop with what the job did after it, as far as its curve and its end are known."""
    evidence, mode = decision.evidence, Mode(decision.evidence.mode)
    after = [each for each in evals if each.step > evidence.trigger_step or each.arrived_s > decision.at_s]
    top, noise = best(after, mode), of_evals(evals)
    return StopRow(
        job=watch.key.job_id,
        user=watch.user,
        rule=evidence.rule,
        at_s=decision.at_s,
        trigger_step=evidence.trigger_step,
        reason=evidence.reason,
        best_before=evidence.best_score,
        best_after=top.score if top else None,
        last_score=evals[-1].score if evals else evidence.scores[-1],
        noise=noise,
        evals_after=len(after),
        lost=_lost(evidence.best_score, top, evals, mode),
        gpu_hours=_gpu_hours(watch, decision.at_s),
        ending=watch.ending.state if watch.ending else "",
        fate=_fate(watch, decision, after, noise),
    )


def _fate(watch: Watch, decision: Decision, after: Sequence[Eval], noise: float) -> Fate:
    if _wronged(decision.evidence, after, noise, ended=watch.ending is not None):
        return Fate.WRONGED
    if decision.done:
        return Fate.STOPPED
    if watch.ending is None:
        return Fate.UNFINISHED
    return Fate.RIGHT if after else Fate.UNTESTED


def _wronged(evidence: Evidence, after: Sequence[Eval], noise: float, *, ended: bool) -> bool:
    """Tell whether a later eval beat the best by more than the noise, or the last one of all simply is better."""
    mode = Mode(evidence.mode)
    top = best(after, mode)
    if top is None:
        return False
    ended_better = ended and mode.better(after[-1].score, evidence.best_score)
    return _gain(evidence.best_score, top.score, mode) > noise or ended_better


def _lost(before: float, top: Eval | None, evals: Sequence[Eval], mode: Mode) -> float:
    gain = _gain(before, top.score, mode) if top is not None else 0.0
    if gain <= 0:
        return 0.0
    whole = spread([each.score for each in evals])
    return min(1.0, gain / whole) if whole > 0 else 1.0


def _gain(before: float, after: float, mode: Mode) -> float:
    return after - before if mode is Mode.MAX else before - after


def _gpu_hours(watch: Watch, at_s: float) -> float | None:
    if watch.ending is None or watch.ending.ended_s is None:
        return None
    since_s = max(at_s, watch.started_s if watch.started_s is not None else at_s)
    return max(0.0, watch.ending.ended_s - since_s) * watch.gpus / _HOUR_S
