"""Whether the owner's own training log bears out, or contradicts, what a stop on an open server would stand on."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.curve import best, curve, is_score
from evalstopd.core.detectors import Stop, fold
from evalstopd.core.intent import UNNAMED, Evidence
from evalstopd.core.logged import completed
from evalstopd.core.model import Eval, JobView, Point
from evalstopd.core.rules import Named, make_detector
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
    """Why there is no log to compare with; `later` tells whether it may still come.

    `silent` tells that there was no answer: whether there is one is not known.
    """

    why: str
    later: bool = False
    silent: bool = False


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
    """What a tracker tells of a job: its curve, the points of the present life; its terms, and who named the metric."""

    evals: Sequence[Eval]
    points: Sequence[Point]
    terms: Terms
    named: Named


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


def contradicted(log: OwnerLog | NoLog, claimed: Claimed) -> str:
    """Return how the owner's log says otherwise than the evals that a stop at the end of this curve rests on.

    Empty where it does not. A metric that the comment does not name must be in the log, for a stranger can log one that
    the training does not; without a log only one that the site does not name either is doubted.

    Compared are the evals from the best one on, and before it those of the present life. No log, or one that has none
    of the life's points (another training's, or another count of steps), says nothing of them; nor does a log say
    anything of what it does not cover: a resumed training's may begin late, one that is saved seldom ends early.
    """
    if isinstance(log, NoLog):
        return f"{UNNAMED}, and no log of the owner's has it: {log.why}" if claimed.named is Named.RUN else ""
    logged = _Logged.of(log, claimed.terms)
    if not logged.scores and claimed.named is not Named.COMMENT:
        return f"{UNNAMED}, and the owner's {log.file} has nothing of it; SHA-256 {log.digest}"
    odd = (each for each in _covered(logged, claimed) if not logged.has(each.step, each.score))
    first = next(odd, None)
    if first is None:
        return ""
    return f"the owner's {log.file} has {logged.at(first.step)}, not {first.score:.10g}; SHA-256 {log.digest}"


def borne_out(log: OwnerLog | NoLog, claimed: Claimed) -> bool:
    """Tell whether the owner's log has the last eval of this curve, and nothing in it says otherwise than the rest."""
    if isinstance(log, NoLog) or not claimed.evals or contradicted(log, claimed):
        return False
    return _Logged.of(log, claimed.terms).has(claimed.evals[-1].step, claimed.evals[-1].score)


def as_decided(evidence: Evidence, claimed: Claimed) -> Claimed:
    """Return what a tracker tells of a job with the evals that a stop was decided on, whatever its run shows since."""
    arrived_s: dict[tuple[int, float], float] = {}
    for each in claimed.points:
        same = (each.step, each.value)
        arrived_s[same] = min(each.arrived_s, arrived_s.get(same, math.inf))
    # What was tampered with may be of unequal lengths, or empty: it must not cost the others their pass.
    pairs = zip(evidence.steps, evidence.scores, strict=False)
    return replace(claimed, evals=[Eval(*pair, arrived_s=arrived_s.get(pair, 0.0)) for pair in pairs])


def worth_waiting(evals: Sequence[Eval], stops: Sequence[int], now_s: float) -> bool:
    """Tell whether a log that may still come is waited for: a trainer evaluates first and saves afterwards."""
    return len(stops) <= _MOST_AWAITED and now_s - evals[stops[-1]].arrived_s <= _PATIENCE_S


@dataclass(frozen=True, slots=True)
class _Logged:
    """The scores that a log has of the metric, by step: whoever compares a run with a log does it by `has`.

    `scores` are each step's in order of size, `last` the last in the log's order.
    """

    scores: Mapping[int, Sequence[float]]
    last: Mapping[int, float]

    @classmethod
    def of(cls, log: OwnerLog, terms: Terms) -> "_Logged":
        scores: dict[int, list[float]] = {}
        last: dict[int, float] = {}
        for step, value in log.series.get(terms.metric, ()):
            if is_score(value):
                scores.setdefault(step, []).append(value)
                last[step] = value
        return cls({step: sorted(found) for step, found in scores.items()}, last)

    def has(self, step: int, score: float) -> bool:
        """Tell whether a score is in the log at this step, but for rounding."""
        found = self.scores.get(step, ())
        # If any is that close, so is the next larger or the next smaller: one step may have all the log's scores.
        at = bisect_left(found, score)
        near = found[max(0, at - 1) : at + 1]
        return any(math.isclose(score, each, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE**2) for each in near)

    def at(self, step: int) -> str:
        """Return what the log has at a step, in words."""
        found = self.last.get(step)
        return f"no eval at step {step}" if found is None else f"{found:.10g} at step {step}"


def _own_curve(log: OwnerLog, terms: Terms) -> tuple[Eval, ...]:
    """Return the curve that the log alone gives, with the standard errors that follow from it."""

    def points(name: str) -> tuple[Point, ...]:
        return tuple(Point("", step, value, order) for order, (step, value) in enumerate(log.series.get(name, ())))

    return curve(completed(terms.metric, points(terms.metric), log.series, points, terms.items))


def _odd_step(log: OwnerLog, claimed: Claimed, at: int) -> int | None:
    """Return the first step whose score the log does not have, None where it has all that must be there."""
    logged = _Logged.of(log, claimed.terms)
    return min((step for step, score in _to_check(claimed, at) if not logged.has(step, score)), default=None)


def _to_check(claimed: Claimed, at: int) -> Iterable[tuple[int, float]]:
    yield from ((each.step, each.score) for each in _from_best(claimed, at))
    trigger = claimed.evals[at].step
    yield from ((each.step, each.value) for each in claimed.points if each.step <= trigger and is_score(each.value))


def _from_best(claimed: Claimed, at: int) -> Sequence[Eval]:
    evals = claimed.evals[: at + 1]
    top = best(evals, claimed.terms.mode)
    return [each for each in evals if top is None or each.step >= top.step]


def _covered(logged: _Logged, claimed: Claimed) -> Iterator[Eval]:
    """Yield the evals that a log would have, had its training made them.

    Of the present life those between the log's first and last step, and, whatever their step, those that arrived
    after one and before another of the points that run and log share: meanwhile the log was being written. Of what
    was before this life, those at a step that the log has.
    """
    arrived = [each.arrived_s for each in claimed.points if logged.has(each.step, each.value)]
    if not (arrived and claimed.evals):
        return
    own = {(each.step, each.value) for each in claimed.points}
    top = _from_best(claimed, len(claimed.evals) - 1)[0].step
    first, last, since_s, until_s = min(logged.scores), max(logged.scores), min(arrived), max(arrived)
    for each in claimed.evals:
        if (each.step, each.score) in own:
            if first <= each.step <= last or since_s < each.arrived_s < until_s:
                yield each
        elif each.step >= top and each.step in logged.scores:
            yield each


def _stops(own: Sequence[Eval], terms: Terms, trigger: int) -> bool:
    upto = [each for each in own if each.step <= trigger]
    return bool(upto) and isinstance(fold(make_detector(terms), JobView("", 0.0, 0), upto)[-1], Stop)
