"""Real eval curves dealt to the RLHF jobs of any workload, in place of drawn ones."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from evalstopd.core.curve import is_score
from evalstopd.errors import WrongUsage
from evalstopd_sim.streams import Draw, stream
from evalstopd_sim.truth import RLHF, TrueJob

_BUNDLED = "curves"
_LABELS = ("declining", "healthy")
# By its JSON: a word such as "no" is not guessed at.
_SIGNS = {"true": 1.0, "false": -1.0}


@dataclass(frozen=True, slots=True)
class RealCurve:
    """A measured curve, higher is better, its range stretched to [0, 1], and whether its source calls it declining."""

    scores: tuple[float, ...]
    declining: bool


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves to deal from, and how many others were left out (ambiguous, secondary metrics, too short)."""

    name: str
    declining: tuple[RealCurve, ...]
    healthy: tuple[RealCurve, ...]
    left_out: int


def read_curves(name: str, most: int = 20) -> Curves:
    """Read curves from JSON lines (`values`, `higher_is_better`, `label`), each cut to `most` evenly picked evals.

    `curves` names the sample that ships with the package. Raises WrongUsage naming file and line.
    """
    text = _text(name)
    made = [_curve(f"{name}:{place}", line, most) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    kept = [curve for curve in made if curve is not None]
    split = {flag: tuple(curve for curve in kept if curve.declining is flag) for flag in (True, False)}
    if not split[True] or not split[False]:
        raise WrongUsage(f"{name}: needs at least one declining and one healthy curve")
    return Curves(name, split[True], split[False], len(made) - len(kept))


def redeal(jobs: Iterator[TrueJob], curves: Curves, seed: int) -> Iterator[TrueJob]:
    """Give every RLHF job a real curve of its kind, hacking or healthy, at equal fractions of its work."""
    draws = stream(seed, Draw.CURVES)
    for job in jobs:
        place = draws.random()
        if job.kind != RLHF:
            yield job
            continue
        pool = curves.declining if job.hacking else curves.healthy
        yield _wear(job, pool[int(place * len(pool))])


def _wear(job: TrueJob, curve: RealCurve) -> TrueJob:
    n = len(curve.scores)
    smooth = _smooth(curve.scores)
    marks = tuple([job.duration_s * (i / n) for i in range(1, n + 1)])
    peak_s = marks[smooth.index(max(smooth))] if job.hacking else inf
    return job._replace(marks=marks, scores=curve.scores, levels=smooth, stderr=None, peak_s=peak_s)


def _smooth(scores: tuple[float, ...]) -> tuple[float, ...]:
    """Return running medians of three, the ends as they are: the nearest thing to a true level there is."""
    inner = (median(scores[i - 1 : i + 2]) for i in range(1, len(scores) - 1))
    return (scores[0], *inner, scores[-1])


def _curve(where: str, line: str, most: int) -> RealCurve | None:
    try:
        record: dict[str, Any] = json.loads(line)
        label = record.get("label_agreed", record["label"])
        values = [float(value) for value in record["values"]]
        sign = _SIGNS[json.dumps(record["higher_is_better"])]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongUsage(f"{where}: not a curve with values, higher_is_better and label") from None
    scores = [sign * value for value in values if is_score(value)]
    if label not in _LABELS or not record.get("primary", True) or len(scores) < 6:
        return None
    low, high = min(scores), max(scores)
    if low == high:
        return None
    return RealCurve(_evenly([(score - low) / (high - low) for score in scores], most), label == "declining")


def _evenly(scores: list[float], most: int) -> tuple[float, ...]:
    if len(scores) <= most:
        return tuple(scores)
    return tuple(scores[round(i * (len(scores) - 1) / (most - 1))] for i in range(most))


def _text(name: str) -> str:
    path = Path(name)
    if name == _BUNDLED and not path.exists():
        return (files("evalstopd_sim") / "data" / "eval_curves_sample.jsonl").read_text(encoding="utf-8")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{name}: cannot be read as curves: {error}") from None
