"""Whether the owner's own training log bears out what a stop on an open server would stand on."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.curve import best, curve, is_score
from evalstopd.core.detectors import Stop, fold
from evalstopd.core.logged import completed
from evalstopd.core.model import Eval, JobView, Point
from evalstopd.core.rules import make_detector
from evalstopd.core.watch import Terms

_TOLERANCE = 1e-6
_PATIENCE_S = 600.0
_MOST_AWAITED = 5


@dataclass(frozen=True, slots=True)
class OwnerLog:
    """What a training log that belongs to the job's owner has of a metric and beside it, as (step, value) in its order.

    `file` is its place below the output folder, `digest` the SHA-256 of the whole file.
    """

    file: str
    digest: str
    series: Mapping[str, tuple[tuple[int, float], ...]]


@dataclass(frozen=True, slots=True)
class NoLog:
    """Why there is no log to compare with; `later` tells whether it may still come."""

    why: str
    later: bool = False


@dataclass(frozen=True, slots=True)
class Agreed:
    """The owner's log bears out a stop at the eval in this place on the curve; `proof` is what the audit shows."""

    at: int
    proof: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """It does not; `later` tells whether it still may."""

    why: str
    later: bool = False


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a tracker tells of a job: its curve, the points behind it of the present life, and the job's terms."""

    evals: Sequence[Eval]
    points: Sequence[Point]
    terms: Terms


def corroborated(log: OwnerLog | NoLog, claimed: Claimed, stops: Sequence[int]) -> Agreed | Doubt:
    """Compare the tracker's word with the owner's; `stops` are the places on the curve that a stop may be decided at.

    Of those that the log reaches, the last is taken. Every eval from the best one to it must be in the log with the
    same score, and so must every point of the present life up to it: who may write can add points, but not remove the
    job's own. And the rule must stop there on the log alone, so that nobody else's points have any part in it.
    """
    if isinstance(log, NoLog):
        return Doubt(log.why, log.later)
    own = _own_curve(log, claimed.terms)
    if not own:
        return Doubt(f"the owner's {log.file} has nothing of the metric")
    reached = [at for at in stops if claimed.evals[at].step <= own[-1].step]
    if not reached:
        return Doubt(f"the owner's {log.file} does not reach the eval", later=True)
    at = reached[-1]
    odd = _odd_step(log, claimed, at)
    if odd is not None:
        return Doubt(f"the owner's {log.file} does not have the score of step {odd}")
    trigger = claimed.evals[at].step
    if not _stops(own, claimed.terms, trigger):
        return Doubt(f"the rule does not stop at step {trigger} on the owner's {log.file} alone")
    first = _from_best(claimed, at)[0].step
    return Agreed(at, f"steps {first} to {trigger} and the verdict as in the owner's {log.file}, SHA-256 {log.digest}")


def worth_waiting(evals: Sequence[Eval], stops: Sequence[int], now_s: float) -> bool:
    """Tell whether a log that may still come is waited for: a trainer evaluates first and saves afterwards."""
    return len(stops) <= _MOST_AWAITED and now_s - evals[stops[-1]].arrived_s <= _PATIENCE_S


def _own_curve(log: OwnerLog, terms: Terms) -> tuple[Eval, ...]:
    """Return the curve that the log alone gives, with the standard errors that follow from it."""

    def points(name: str) -> tuple[Point, ...]:
        return tuple(Point("", step, value, order) for order, (step, value) in enumerate(log.series.get(name, ())))

    return curve(completed(terms.metric, points(terms.metric), log.series, points, terms.items))


def _odd_step(log: OwnerLog, claimed: Claimed, at: int) -> int | None:
    """Return the first step whose score the log does not have, None where it has all that must be there."""
    scores: defaultdict[int, list[float]] = defaultdict(list)
    for step, value in log.series.get(claimed.terms.metric, ()):
        scores[step].append(value)
    odd = [step for step, score in _to_check(claimed, at) if not _among(score, scores.get(step, ()))]
    return min(odd, default=None)


def _to_check(claimed: Claimed, at: int) -> Iterable[tuple[int, float]]:
    yield from ((each.step, each.score) for each in _from_best(claimed, at))
    trigger = claimed.evals[at].step
    yield from ((each.step, each.value) for each in claimed.points if each.step <= trigger and is_score(each.value))


def _from_best(claimed: Claimed, at: int) -> Sequence[Eval]:
    evals = claimed.evals[: at + 1]
    top = best(evals, claimed.terms.mode)
    return [each for each in evals if top is None or each.step >= top.step]


def _among(score: float, others: Iterable[float]) -> bool:
    return any(math.isclose(score, each, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE**2) for each in others)


def _stops(own: Sequence[Eval], terms: Terms, trigger: int) -> bool:
    upto = [each for each in own if each.step <= trigger]
    return bool(upto) and isinstance(fold(make_detector(terms), JobView("", 0.0, 0), upto)[-1], Stop)
