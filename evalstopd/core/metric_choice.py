"""Which of a run's metrics judges its job, and which way is better: what cannot be told is said, never assumed."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evalstopd.core.guards import DIRECTION, Caution, metric_cautions
from evalstopd.core.logged import is_beside
from evalstopd.core.model import Mode
from evalstopd.core.naming import spoken_for

Modes = Sequence[tuple[str, Mode]]
"""Patterns of metrics' names with the direction that is better, the first that fits counts."""

_SHOWN = 4
_SPEED = re.compile(r"[_/](runtime|(samples|steps|tokens)_per_second|num_tokens|samples|jit_compilation_time|epoch)$")
_SYSTEM = "system/"  # MLflow's own, of the machine
_TRAINER_WORDS = {"true": Mode.MAX, "false": Mode.MIN}


@dataclass(frozen=True, slots=True)
class Unclear:
    """No metric can be chosen; `text` says why."""

    text: str


def choose(names: Collection[str], patterns: Iterable[str]) -> str | Unclear | None:
    """Return the metric that the first fitting pattern means; None where none fits (yet).

    `*` stands for any letters. A training loss or reward, a speed, and what is logged beside another metric are never
    chosen. Where a pattern fits several metrics, no later one decides between them: the owner has to.
    """
    for pattern in patterns:
        fitting = sorted(name for name in names if fnmatchcase(name, pattern) and _may_judge(name, names))
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            return Unclear(f"{pattern} fits {_listed(fitting)}: name one by evalstop_metric=")
    return None


def site_mode(metric: str, modes: Modes) -> Mode | None:
    """Return which way the site says is better for a metric."""
    return next((mode for pattern, mode in modes if fnmatchcase(metric, pattern)), None)


def told_mode(metric: str, modes: Modes, params: Mapping[str, str]) -> Mode | None:
    """Return which way is better by the site, else by the trainer; None where nobody says.

    Hugging Face's Trainer logs `metric_for_best_model`, with or without `eval_`, and `greater_is_better` as parameters.
    """
    by_site = site_mode(metric, modes)
    if by_site is not None or metric.removeprefix("eval_") != _best_of(params):
        return by_site
    return _TRAINER_WORDS.get(params.get("greater_is_better", "").lower())


def is_sweeping(metric: str, modes: Modes) -> bool:
    """Tell whether the site says the direction by a pattern alone, which may fit what nobody thought of."""
    return next((pattern != metric for pattern, _ in modes if fnmatchcase(metric, pattern)), False)


def direction_caution(
    metric: str, mode: Mode, told: Mode | None, *, stated: bool, sweeping: bool = False
) -> Caution | None:
    """Return a caution where the direction by which a job is judged is a guess, or is contradicted.

    `told` is what `told_mode` returns now; `stated` tells that the site's own `mode` says it of this metric: to name a
    metric is not to say its direction, and a name that speaks for one is a guess. What was told by a `sweeping` pattern
    or stated must not be contradicted by any word of the name: "val/*" = "max" is not meant for val/loss.
    """
    against = told
    if (sweeping and told is mode) or (stated and told is None):
        against = next(iter(spoken_for(metric) - {mode}), told)
    if against is not None and against is not mode:
        text = f"{mode.value} is taken for better, and {_word(metric)} speaks for {against.value}"
    elif told is None and not stated:
        text = f"that {mode.value} is better for {_word(metric)} is a guess"
    else:
        return None
    return Caution(
        DIRECTION, f"{text}: the owner can say evalstop_mode=, the site rules.mode or rules.modes", refuse=True
    )


def _may_judge(name: str, names: Collection[str]) -> bool:
    if name.startswith(_SYSTEM) or _SPEED.search(name) or is_beside(name, names):
        return False
    return not any(each.refuse for each in metric_cautions(name, names))


def _best_of(params: Mapping[str, str]) -> str:
    return params.get("metric_for_best_model", "").removeprefix("eval_")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(_word, names[:_SHOWN])) + more


def _word(name: str) -> str:
    """Return user text fit for a line."""
    return name if name.isascii() and name.isprintable() and len(name) <= 80 else ascii(name[:80])
