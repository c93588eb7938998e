"""How often a rule stops runs that have nothing wrong with them: made-up ones, and healthy real ones re-sampled."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random  # noqa: TID251 - a seeded stream, made here and passed on
from types import MappingProxyType

from evalstopd.core.detectors import detector
from evalstopd.core.model import Mode
from evalstopd.report.replay.history import NEGATIVE, History, evals_of, thinned
from evalstopd.report.replay.intervals import Estimate, rate
from evalstopd.report.replay.judge import first_stop

LENGTHS = (10, 20, 50, 100)
"""Evals a run in the table."""

RESAMPLED = "healthy real runs, re-sampled"
_NOISE = 0.05  # of the made-up runs that rise to about 1


@dataclass(frozen=True, slots=True)
class FalseStops:
    """The share of runs of one kind and length that a rule stops without cause."""

    rule: str
    case: str
    evals: int
    share: Estimate


Maker = Callable[[int, Random], list[float]]


def flat(evals: int, stream: Random) -> list[float]:
    """Return independent Gaussian noise round a constant."""
    return [stream.gauss(0, 1) for _ in range(evals)]


def autoregressive(evals: int, stream: Random) -> list[float]:
    """Return noise in which each eval keeps half of the last one's deviation: AR(1), .5."""
    scores = [stream.gauss(0, 1)]
    for _ in range(evals - 1):
        scores.append(0.5 * scores[-1] + math.sqrt(0.75) * stream.gauss(0, 1))
    return scores


def heavy_tailed(evals: int, stream: Random) -> list[float]:
    """Return noise with Student's t of three degrees of freedom."""
    return [_student(stream, 3) for _ in range(evals)]


def plateau(evals: int, stream: Random) -> list[float]:
    """Return a rise to about 1 that is flat in its second half, with noise of .05."""
    return [1 - math.exp(-8 * i / evals) + stream.gauss(0, _NOISE) for i in range(1, evals + 1)]


def dip(evals: int, stream: Random) -> list[float]:
    """Return the plateau with a fall of .4 between 40 and 70 % of the run, from which it recovers."""
    scores = plateau(evals, stream)
    return [score - 0.4 * _bell((i + 1) / evals) for i, score in enumerate(scores)]


CASES: Mapping[str, Maker] = MappingProxyType(
    {
        "flat, independent noise": flat,
        "flat, AR(1) .5": autoregressive,
        "flat, t3 noise": heavy_tailed,
        "plateau after a rise": plateau,
        "dip of .4 that recovers": dip,
    }
)


def null_table(rules: Iterable[str], histories: Sequence[History], runs: int, seed: int) -> tuple[FalseStops, ...]:
    """Return each rule's false stops by case and length; the same runs for every rule.

    Healthy real runs (by the agreed label, else the sigma label) of 100 evals or more are re-sampled, if given.
    """
    made = {(case, n): _runs(maker, n, runs, seed) for case, maker in CASES.items() for n in LENGTHS}
    real = [each for each in histories if len(each.evals) >= LENGTHS[-1] and _healthy(each)]
    if real:
        made |= {(RESAMPLED, n): [thinned(each, n) for each in real] for n in LENGTHS}
    return tuple(_stopped(rule, case, n, cases) for rule in rules for (case, n), cases in made.items())


def _stopped(rule: str, case: str, evals: int, runs: Sequence[History]) -> FalseStops:
    rules = {mode: detector(rule, mode) for mode in Mode}
    hits = sum(first_stop(rules[run.mode], run.evals) is not None for run in runs)
    return FalseStops(rule, case, evals, rate(hits, len(runs)))


def _runs(maker: Maker, evals: int, runs: int, seed: int) -> list[History]:
    stream = Random(f"{seed} {maker.__name__} {evals}")  # noqa: S311 - nothing secret
    steps = range(evals)
    return [History("", "", "", "", Mode.MAX, evals_of(steps, maker(evals, stream))) for _ in range(runs)]


def _healthy(history: History) -> bool:
    return history.labels.get("label_agreed", history.labels.get("label")) in NEGATIVE


def _student(stream: Random, freedom: int) -> float:
    squares = math.fsum(stream.gauss(0, 1) ** 2 for _ in range(freedom))
    return stream.gauss(0, 1) / math.sqrt(squares / freedom)


def _bell(share: float) -> float:
    return math.sin(math.pi * (share - 0.4) / 0.3) ** 2 if 0.4 < share < 0.7 else 0.0
