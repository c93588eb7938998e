"""One ended run as replay sees it: its evals, where it came from, and how it was labelled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from evalstopd.core.curve import is_score, per_step
from evalstopd.core.model import Eval, Mode, Point

LABELS = ("label_true", "label_agreed", "label", "label_boot", "label_sigma_free")
"""What a run can be labelled by; see docs/rules.md for how each is made."""

POSITIVE = frozenset({"declining", "declining-from-start"})
NEGATIVE = frozenset({"healthy"})


@dataclass(frozen=True, slots=True)
class JobTag:
    """The Slurm job that a run's tags name: its raw id, and its cluster if that is named. Users write tags."""

    raw_id: str
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """A whole curve. `source` is the unit that is kept together when thresholds are chosen.

    `labels` maps the name of a labelling to `healthy`, `declining`, `declining-from-start` or `ambiguous`. `times_s`
    has the moment of each eval by the client's clock, of which only differences mean anything; empty: not known.
    """

    name: str
    source: str
    family: str
    metric: str
    mode: Mode
    evals: tuple[Eval, ...] = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    primary: bool = True
    job: JobTag | None = None
    times_s: tuple[float, ...] = field(default=(), repr=False)


def thinned(history: History, most: int | None) -> History:
    """Return the run with at most `most` evals, evenly picked, the first and the last kept."""
    count = len(history.evals)
    if most is None or count <= most:
        return history
    picked = [round(i * (count - 1) / (most - 1)) for i in range(most)]
    times = tuple(history.times_s[i] for i in picked) if history.times_s else ()
    return replace(history, evals=tuple(history.evals[i] for i in picked), times_s=times)


def evals_of(steps: Sequence[float], scores: Sequence[float], stderrs: Sequence[float | None] = ()) -> tuple[Eval, ...]:
    """Return evals as the daemon sees them, given in the order of their arrival: by step, of each step the last score.

    Steps that are not whole numbers are replaced by their rank. Raises ValueError for a step that is not finite.
    """
    if not all(map(isfinite, steps)):
        raise ValueError("a step is not a finite number")
    whole = all(float(step).is_integer() for step in steps)
    rank = {step: place for place, step in enumerate(sorted(set(steps)))}
    arrived = [
        Point("", int(step) if whole else rank[step], float(score), place, stderr=error)
        for place, (step, score, error) in enumerate(zip(steps, scores, stderrs or [None] * len(scores), strict=True))
    ]
    # What is no score stands where its step has none: it is an eval that was made, though no rule counts it.
    kept = {point.step: point for point in arrived if not is_score(point.value)} | {
        point.step: point for point in per_step(arrived, ended=True)
    }
    return tuple(Eval(step, kept[step].value, kept[step].stderr) for step in sorted(kept))
