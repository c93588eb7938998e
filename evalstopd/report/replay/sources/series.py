"""What all sources share: series of points by metric become histories, one metric of a run being its primary one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.curve import STDERR, curve, with_errors
from evalstopd.core.model import Mode, Point
from evalstopd.report.replay.history import History
from evalstopd.report.replay.labels import labels

_LESS_IS_BETTER = re.compile(r"(^|[/_.-])(loss|error|err|perplexity|ppl|wer|cer|mse|mae|rmse)([/_.-]|$)", re.IGNORECASE)
_HELD_OUT = re.compile(r"(^|[/_.-])(eval|val|valid|validation|test|dev|heldout|held_out|gold)([/_.-]|$)", re.IGNORECASE)
_SPEED = re.compile(r"(runtime|per_second|epoch|_time|learning_rate)", re.IGNORECASE)
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Pick:
    """Which metric of a run is meant and which way is better; empty and None: guessed from the names."""

    metric: str = ""
    mode: Mode | None = None


def histories(
    name: str, source: str, family: str, series: Mapping[str, Sequence[Point]], pick: Pick
) -> Iterator[History]:
    """Yield a run's held-out series (or the one that was named) as histories, labelled by their own shape.

    Without a name, the primary metric is the first in the alphabet that is not a loss.
    """
    keys = sorted(key for key in series if wanted(key, pick))
    chosen = next((key for key in keys if not _LESS_IS_BETTER.search(key)), keys[0] if keys else "")
    for key in keys:
        beside = series.get(f"{key}{STDERR}")
        evals = curve(series[key] if beside is None else with_errors(series[key], beside))
        if len(evals) >= _FEWEST:
            mode = pick.mode or guessed_mode(key)
            shape = labels([each.score for each in evals], mode)
            yield History(name, source, family, key, mode, evals, shape, primary=key == chosen)


def guessed_mode(metric: str) -> Mode:
    """Return the direction that a metric's name speaks for."""
    return Mode.MIN if _LESS_IS_BETTER.search(metric) else Mode.MAX


def wanted(key: str, pick: Pick) -> bool:
    """Tell whether a metric is one to replay: the one that was named, else any that its name calls held out."""
    if pick.metric:
        return key == pick.metric
    return not key.endswith(STDERR) and bool(_HELD_OUT.search(key)) and not _SPEED.search(key)
