"""Every decision folded again: from its own evidence, and from the job's points as they stood when it was made."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.chain import would_be_name
from evalstopd.core.checkpoint_choice import k_before
from evalstopd.core.curve import best, curve, series
from evalstopd.core.detectors import Declining, Stop, Verdict
from evalstopd.core.intent import Evidence
from evalstopd.core.model import Eval, JobKey, Life, Mode, Rung
from evalstopd.core.plan import declines, reason, renewed, verdicts
from evalstopd.core.watch import Terms, Watch
from evalstopd.ports import Accounts, Span, Store
from evalstopd.report.text import plain


class Book(Accounts, Store, Protocol):
    """What folding again asks of a store."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision of the book; `at_s` in seconds since the epoch."""

    id: str
    key: JobKey
    life: Life
    at_s: float
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that folding again does not confirm; `of` is `evidence` or `points`."""

    id: str
    job: str
    at_s: float
    of: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth a look that has innocent reasons too: no difference."""

    id: str
    job: str
    text: str


@dataclass(frozen=True, slots=True)
class Refolded:
    """What folding again found: how many decisions, how many by another version than this one, and the differences."""

    good: bool
    decisions: int
    other_versions: int
    differences: tuple[Difference, ...]
    notes: tuple[Note, ...]


Watched = Callable[[Sequence[Decided]], Iterable[Decided]]
"""What shows the progress over the decisions."""


def refold(book: Book, span: Span, version: str, watched: Watched = lambda decided: decided) -> Refolded:
    """Fold the decisions of a span again, by the rule that each names; `version` is this program's."""
    decided = decisions(book, span)
    differences: list[Difference] = []
    notes: list[Note] = []
    for each in watched(decided):
        differences += [Difference(each.id, each.key.job_id, each.at_s, *found) for found in _differences(book, each)]
        notes += [Note(each.id, each.key.job_id, text) for text in _earlier_stop(each.evidence)]
    others = sum(each.evidence.version != version for each in decided)
    return Refolded(not differences, len(decided), others, tuple(differences), tuple(notes))


def decisions(book: Accounts, span: Span) -> tuple[Decided, ...]:
    """Return the decisions of a span, those that were only booked too, oldest first."""
    found = [Decided(each.id, each.key, each.life, each.created_s, each.evidence) for each in book.intents_within(span)]
    found += [
        Decided(would_be_name(stop), stop.key, stop.life, stop.at_s, stop.evidence)
        for stop in book.would_be_within(span)
    ]
    return tuple(sorted(found, key=lambda each: (each.at_s, each.id)))


def _differences(book: Store, each: Decided) -> Iterator[tuple[str, str]]:
    try:
        yield from (("evidence", text) for text in _refolded(each, evals_of(each.evidence)))
        yield from (("points", text) for text in _against_points(book, each))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # A rule or a list that was tampered with may be nonsense to any rule.
        yield "evidence", f"cannot be folded: {type(error).__name__}: {plain(str(error))}"


def evals_of(evidence: Evidence) -> tuple[Eval, ...]:
    """Return the evals that a decision rests on. Raises ValueError where they are not one score a step, in order."""
    errors = evidence.stderrs or (None,) * len(evidence.steps)
    if list(evidence.steps) != sorted(set(evidence.steps)):
        raise ValueError("the steps are not in order, or one is there twice")
    return tuple(Eval(*each) for each in zip(evidence.steps, evidence.scores, errors, strict=True))


def _terms(evidence: Evidence) -> Terms:
    return Terms(Rung.OBSERVE, evidence.rule, evidence.metric, Mode(evidence.mode), dataset=evidence.dataset)


def _refolded(each: Decided, evals: Sequence[Eval]) -> Iterator[str]:
    """Yield what the rule says otherwise on the very evals of the evidence."""
    told, answers = each.evidence, verdicts(evals, _terms(each.evidence))
    if not answers or len(answers) != len(evals):
        yield "its evals are not finite scores"
        return
    last, top = answers[-1], best(evals, Mode(told.mode))
    if told.trigger_step != evals[-1].step:
        yield f"the stop is noted for step {told.trigger_step}, its last eval is of step {evals[-1].step}"
    if not isinstance(last, Stop):
        yield f"{plain(told.rule)} says {_word(last)} at step {evals[-1].step}, not stop"
        return
    watch = renewed(Watch(each.key, each.life, 0.0, _terms(told)), evals, _terms(told), last)
    before = k_before(evals, last.count)
    facts = (
        ("declines", told.declines, declines(last)),
        ("reason", told.reason, reason(last, watch)),
        ("best step", told.best_step, top.step if top is not None else None),
        ("best score", told.best_score, top.score if top is not None else None),
        ("step k evals before", told.k_before_step, before.step if before is not None else None),
    )
    yield from (f"{what} is {_shown(noted)}, folded again {_shown(now)}" for what, noted, now in facts if noted != now)


def _earlier_stop(evidence: Evidence) -> Iterator[str]:
    """Yield a line where the rule said stop at an eval before the trigger, with no new best after it."""
    try:
        evals = evals_of(evidence)
        answers = verdicts(evals, _terms(evidence))
        stops = [point.step for point, answer in zip(evals, answers, strict=True) if isinstance(answer, Stop)]
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return
    early = [step for step in stops if evidence.best_step <= step < evidence.trigger_step]
    if early:
        yield (
            f"{plain(evidence.rule)} says stop at step {early[0]}, the decision came at step {evidence.trigger_step}: "
            "an earlier decision, a veto, history of an earlier life, or another rule than the one noted"
        )


def _against_points(book: Store, each: Decided) -> Iterator[str]:
    """Yield where the frozen evidence and the points that had arrived by the decision disagree."""
    stored = as_they_stood(book, each)
    frozen = {point.step: point for point in evals_of(each.evidence)}
    held = {point.step: point for point in stored}
    if not held:
        yield "none of its evals is among the job's stored points"
        return
    found = [text for step in sorted(frozen.keys() | held.keys()) for text in _at(frozen.get(step), held.get(step))]
    if found:
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        last = verdicts(stored, _terms(each.evidence))[-1]
        yield f"{'; '.join(found[:3])}{more}; on the points the rule says {_word(last)} at step {stored[-1].step}"


def as_they_stood(book: Store, each: Decided) -> tuple[Eval, ...]:
    """Return the job's curve up to the trigger, of the points that had arrived when the decision was made.

    A standard error may have come later than its point: when is not stored.
    """
    points = book.points([each.key]).get(each.key, ())
    evidence = each.evidence
    judged_by = series(points, evidence.metric, evidence.dataset)
    arrived = [point for point in judged_by if point.arrived_s <= each.at_s]
    return tuple(point for point in curve(arrived) if point.step <= evidence.trigger_step)


def _at(frozen: Eval | None, held: Eval | None) -> Iterator[str]:
    if frozen is None or held is None:
        known = frozen or held
        step = known.step if known is not None else 0
        yield f"step {step} is only among {'the points' if frozen is None else 'the evidence'}"
    elif frozen.score != held.score:
        yield f"step {frozen.step} has {frozen.score!r} in the evidence, {held.score!r} among the points"
    elif frozen.stderr not in (None, held.stderr):
        yield f"step {frozen.step} has the error {frozen.stderr!r} in the evidence, {held.stderr!r} among the points"


def _word(verdict: Verdict) -> str:
    match verdict:
        case Stop():
            return "stop"
        case Declining(count=count, of=of):
            return f"declining {count} of {of}"
        case _:
            return "keep going"


def _shown(value: object) -> str:
    return f"'{plain(value, 300)}'" if isinstance(value, str) else repr(value)


def sentences(found: Refolded) -> Sequence[str]:
    """Return what folding again found, as people read it."""
    others = f" ({found.other_versions} of them made by another version)" if found.other_versions else ""
    lines = [f"decisions folded again: {found.decisions}{others}; differences: {len(found.differences)}"]
    lines += [f"job {plain(d.job)}, {plain(d.id)}, {d.of}: {d.text}" for d in found.differences]
    return [*lines, *(f"note on job {plain(note.job)}, {plain(note.id)}: {note.text}" for note in found.notes)]
