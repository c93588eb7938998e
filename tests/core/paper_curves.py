"""Curves of the paper's setting (8 evals a job, as fitted by us), for tests of rules that need a known truth."""

import math
from dataclasses import dataclass
from random import Random

from evalstopd.core.model import Eval

EVALS = 8


@dataclass(frozen=True)
class PaperRun:
    """A run with its truth: scores before noise, and the share of progress at which a hacking run peaks."""

    evals: tuple[Eval, ...]
    true: tuple[float, ...]
    peak: float | None


def healthy(stream: Random, sigma: float) -> PaperRun:
    return _run([_gain((i + 1) / EVALS) for i in range(EVALS)], None, stream, sigma)


def hacking(stream: Random, sigma: float) -> PaperRun:
    peak, depth = stream.uniform(0.55, 0.75), stream.uniform(0.25, 0.65)
    places = [(i + 1) / EVALS for i in range(EVALS)]
    return _run([_gain(p) if p <= peak else _fallen(p, peak, depth) for p in places], peak, stream, sigma)


def _gain(place: float) -> float:
    return 0.15 + 0.8 * (1 - math.exp(-3 * place)) / (1 - math.exp(-3))


def _fallen(place: float, peak: float, depth: float) -> float:
    return _gain(peak) - depth * ((place - peak) / (1 - peak)) ** 2


def _run(true: list[float], peak: float | None, stream: Random, sigma: float) -> PaperRun:
    scores = [min(1.0, max(0.0, score + stream.gauss(0, sigma))) for score in true]
    return PaperRun(tuple(Eval(i, score, sigma) for i, score in enumerate(scores)), tuple(true), peak)
