"""Warnings beside the rules: metrics known to mislead, eval sets that change, a proxy that leaves the truth behind."""

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evalstopd.core.logged import is_share
from evalstopd.core.model import Eval, Mode
from evalstopd.core.naming import words
from evalstopd.core.noise import from_curve, items_behind, middle

_PREFERENCE_KEY = re.compile(r"(^|[/_])(rewards/(margins|accuracies|chosen|rejected)|log_odds_(chosen|ratio))")
_HELD_OUT = frozenset(
    (
        "eval", "evals", "evaluation", "val", "valid", "validation", "test", "dev", "heldout", "holdout", "gold",
        "golden", "bench", "benchmark", "benchmarks",
    )
)  # fmt: skip
_LOSSES = frozenset(("loss", "losses"))
_REWARDS = frozenset(("reward", "rewards", "rew"))
_TRAIN = frozenset(("train", "training", "trainer"))
_TRAINING = (
    _TRAIN | _LOSSES | _REWARDS | frozenset(("rollout", "rollouts", "critic", "actor", "objective", "ppo", "grpo"))
)
_EVAL_REWARD = "eval_reward"
_SET_SIZE = "eval-set-size"
DIRECTION = "direction"
MIXED = "several-series"
UNTOLD = "untold-dataset"
_SIZE_CHANGE = 1.5
_TOGETHER = 3
_SMALLEST_SET, _LARGEST_SET = 10, 1e9
_FEWEST = 9
_CLEAR = 3.0


@dataclass(frozen=True, slots=True)
class Caution:
    """One thing against judging a run by this metric; with `refuse` the run must not be judged by it."""

    code: str
    text: str
    refuse: bool


def metric_cautions(metric: str, others: Collection[str] = ()) -> tuple[Caution, ...]:
    """Return what is known against a metric, by its name and the names of the run's other metrics.

    Source: real runs of HF Trainer, TRL and model cards: eval_loss of a DPO run rises while its accuracy does too;
    eval_reward of GRPO is the weighted proxy and was the hacked one.
    """
    found = words(metric)
    loss, held_out = not _LOSSES.isdisjoint(found), _is_held_out(found)
    cautions: list[Caution] = []
    if loss and any(_PREFERENCE_KEY.search(each) for each in (metric, *others)):
        cautions.append(_PREFERENCE_LOSS)
    elif loss and held_out:
        cautions.append(_EVAL_LOSS)
    if not (held_out or _TRAINING.isdisjoint(found)):
        cautions.append(_TRAINING_METRIC)
    if metric == _EVAL_REWARD:
        cautions.append(_PROXY)
    return tuple(cautions)


def _is_held_out(found: Sequence[str]) -> bool:
    """Tell whether a name says that it is measured held out; not where it begins by saying that it is training's."""
    if not found or found[0] in _TRAIN:
        return False
    return not _HELD_OUT.isdisjoint(found) or ("held", "out") in pairwise(found)


def cautions(metric: str, others: Collection[str], evals: Sequence[Eval]) -> tuple[Caution, ...]:
    """Return all that speaks against judging a run by this metric: its name, and what its evals show."""
    changed = set_size_caution(evals) if is_share(metric) else None
    return (*metric_cautions(metric, others), *((changed,) if changed else ()))


def set_size_caution(evals: Sequence[Eval]) -> Caution | None:
    """Return a caution where logged errors say that the eval set changed size during the run; only for accuracies.

    An error that no set of items gives, for it would have fewer than 10 or more than 1e9, says nothing of it.

    An accuracy p with standard error s comes from about p (1 - p) / s^2 items; a change by half again is one. The
    medians of three evals in a row are compared, for one odd error (a bootstrap's, an accuracy near 1) is none. Both
    ways in which errors are made, as libraries do and as we do where items are logged, must show the change.
    """
    sizes = _sizes(evals, _implied_items)
    if not (_changed(sizes) and _changed(_sizes(evals, _items_behind))):
        return None
    text = f"the eval set seems to have changed size: from about {min(sizes):.0f} to about {max(sizes):.0f} items"
    return Caution(_SET_SIZE, text, refuse=True)


def _sizes(evals: Sequence[Eval], behind: Callable[[Eval], float | None]) -> list[float]:
    known = [size for each in evals if (size := behind(each)) is not None]
    return [middle(known[at : at + _TOGETHER]) for at in range(len(known) - _TOGETHER + 1)]


def _changed(sizes: Sequence[float]) -> bool:
    return bool(sizes) and max(sizes) > _SIZE_CHANGE * min(sizes)


def proxy_alarm(proxy: Sequence[Eval], held_out: Sequence[Eval], mode: Mode = Mode.MAX) -> str | None:
    """Return a line for the report where the proxy reward still rises and the held-out score does not; never a stop.

    The last third of each curve is set against the third before it: the proxy must have risen by three standard
    errors of that difference, the held-out score by less than one. From 9 evals of each on.
    """
    if min(len(proxy), len(held_out)) < _FEWEST:
        return None
    gained, truly = _gain(proxy, Mode.MAX), _gain(held_out, mode)
    if gained >= _CLEAR and truly < 1:
        return "the training reward still rises while the held-out score does not: the reward may be being gamed"
    return None


def _gain(evals: Sequence[Eval], mode: Mode) -> float:
    """Return the rise from the middle third to the last, in standard errors; 0 where nothing moves."""
    scores = [each.score if mode is Mode.MAX else -each.score for each in evals]
    third = len(scores) // 3
    rise = (sum(scores[-third:]) - sum(scores[-2 * third : -third])) / third
    error = from_curve(scores) * math.sqrt(2 / third)
    return rise / error if error > 0 else 0.0


def _implied_items(each: Eval) -> float | None:
    if each.stderr is None or each.stderr <= 0 or not 0 < each.score < 1:
        return None
    items = each.score * (1 - each.score) / each.stderr / each.stderr
    return items if _SMALLEST_SET <= items < _LARGEST_SET else None


def _items_behind(each: Eval) -> float | None:
    if each.stderr is None or each.stderr <= 0 or not 0 < each.score < 1:
        return None
    items = items_behind(each.score, each.stderr)
    return items if _SMALLEST_SET <= items < _LARGEST_SET else None


_PREFERENCE_LOSS = Caution(
    "preference-loss", "a preference-training loss (DPO, ORPO) rises in healthy runs: judge by an accuracy", refuse=True
)
_EVAL_LOSS = Caution(
    "eval-loss", "a loss can rise while the task's own score still does: prefer the score you care for", refuse=False
)
_TRAINING_METRIC = Caution(
    "training-metric", "this is measured in training, not held out: over-optimisation cannot show in it", refuse=True
)
_PROXY = Caution(
    "proxy", "eval_reward is the weighted training reward, the one that gets gamed: judge by a true score", refuse=True
)
REFUSING = frozenset(each.code for each in (_PREFERENCE_LOSS, _TRAINING_METRIC, _PROXY)) | {
    _SET_SIZE,
    DIRECTION,
    MIXED,
    UNTOLD,
}
"""The codes of cautions that refuse: what such a job's evals did says nothing of a rule."""
