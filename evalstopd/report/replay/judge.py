"""One rule over one run: where it would have stopped, what that would have saved and lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from evalstopd.core.curve import is_score
from evalstopd.core.detectors import Detector, Stop, detector
from evalstopd.core.model import Eval, JobView, Mode
from evalstopd.core.noise import spread
from evalstopd.core.spec import Spec
from evalstopd.report.replay.history import History

_NOBODY = JobView("", 0.0, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule would have done to a run of `evals` evals.

    `stopped` is the index of the eval it stops at, None where the run goes to its end. `saved` is the share of
    the time from the first eval to the last that is left then. `kept` is the best smoothed score up to the stop;
    `lost` is how far the whole run's best smoothed score lies above it, as a share of the run's 5-95 % range, at
    most 1. `left_s` is the time from the stop's eval to the last one, in seconds; None where it is not known.
    """

    history: History
    evals: int
    stopped: int | None
    saved: float = 0.0
    kept: float | None = None
    lost: float = 0.0
    left_s: float | None = None


def judge(history: History, rule: Spec | str) -> Outcome:
    """Return what a rule would have done. A trigger on the last eval is none: there is nothing left to stop."""
    evals = [each for each in history.evals if is_score(each.score)]
    return outcome_at(history, first_stop(detector(rule, history.mode), evals))


def outcome_at(history: History, stopped: int | None) -> Outcome:
    """Return what a stop at that eval would have done, counted among those that are scores; None: no stop."""
    judged = [place for place, each in enumerate(history.evals) if is_score(each.score)]
    evals = [history.evals[place] for place in judged]
    scores = upward([each.score for each in evals], history.mode)
    kept = max(smoothed(scores[: stopped + 1] if stopped is not None else scores), default=None)
    shown = kept if kept is None or history.mode is Mode.MAX else -kept
    if stopped is None or kept is None:
        return Outcome(history, len(evals), None, kept=shown)
    left_s = history.times_s[-1] - history.times_s[judged[stopped]] if history.times_s else None
    return Outcome(history, len(evals), stopped, _left(stopped, len(evals)), shown, _lost(scores, kept), left_s)


def first_stop(rule: Detector, evals: Sequence[Eval]) -> int | None:
    """Return the index of the first eval, the last one excepted, at which the rule stops; None if it never does."""
    state = rule.start(_NOBODY)
    for index, each in enumerate(evals[:-1]):
        state, verdict = rule.step(state, each)
        if isinstance(verdict, Stop):
            return index
    return None


def upward(scores: Sequence[float], mode: Mode) -> list[float]:
    """Return the scores so that more is better."""
    return list(scores) if mode is Mode.MAX else [-score for score in scores]


def smoothed(scores: Sequence[float]) -> list[float]:
    """Return the centred median of three; the ends keep their own score."""
    inner = [median(scores[i - 1 : i + 2]) for i in range(1, len(scores) - 1)]
    return [*scores[:1], *inner, *scores[-1:]] if len(scores) > 1 else list(scores)


def _left(stopped: int, evals: int) -> float:
    return (evals - 1 - stopped) / (evals - 1)


def _lost(scores: Sequence[float], kept: float) -> float:
    gap, whole = max(smoothed(scores)) - kept, spread(scores)
    if gap <= 0:
        return 0.0
    return min(1.0, gap / whole) if whole > 0 else 1.0
