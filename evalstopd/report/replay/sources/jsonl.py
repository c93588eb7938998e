"""JSON lines: one labelled curve a line, the form in which collections of curves are exchanged."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalstopd.core.curve import is_score
from evalstopd.core.model import Mode
from evalstopd.errors import WrongUsage
from evalstopd.report.replay.history import LABELS, History, evals_of
from evalstopd.report.replay.labels import labels
from evalstopd.report.replay.sources.series import Pick


def read_jsonl(path: Path, pick: Pick) -> Iterator[History]:
    """Yield one history a line. Raises WrongUsage naming the line that cannot be read.

    Needed: `steps`, `values`. Used where there: `stderrs`, `id`, `repo`, `algorithm`, `family`, `metric`,
    `higher_is_better` (true), `primary` (true) and the labels. A null in `values` is no score.
    """
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            history = _history(path, number, line, pick) if line.strip() else None
            if history is not None and pick.metric in ("", history.metric):
                yield history


def _history(path: Path, number: int, line: str, pick: Pick) -> History:
    try:
        row = json.loads(line)
        scores = [math.nan if value is None else float(value) for value in row["values"]]
        evals = evals_of([float(step) for step in row["steps"]], scores, _errors(row))
        higher, primary = _flag(row, "higher_is_better"), _flag(row, "primary")
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        said = f"{type(error).__name__}: {str(error)[:80]!a}"
        raise WrongUsage(f"{path}, line {number}: not a curve with steps and values ({said})") from None
    mode = pick.mode or (Mode.MAX if higher else Mode.MIN)
    given = {name: str(row[name]) for name in LABELS if row.get(name)}
    return History(
        name=_text(row, "id", f"{path.name}:{number}"),
        source=_source(row, path),
        family=_text(row, "family", "unknown"),
        metric=_text(row, "metric", "score"),
        mode=mode,
        evals=evals,
        labels=given or labels([each.score for each in evals if is_score(each.score)], mode),
        primary=primary,
    )


def _errors(row: dict[str, Any]) -> list[float | None]:
    return [None if error is None else float(error) for error in row.get("stderrs", ())]


def _flag(row: dict[str, Any], key: str) -> bool:
    """Return what is told, true where nothing is; a word such as "no" is not guessed at."""
    value = row.get(key, True)
    if not isinstance(value, bool):
        raise TypeError(f"{key} is true or false, not {value!a}")
    return value


def _text(row: dict[str, Any], key: str, default: str) -> str:
    return str(row.get(key) or default)


def _source(row: dict[str, Any], path: Path) -> str:
    """A repository's runs of one algorithm belong together: they share code, task and habits."""
    return f"{_text(row, 'repo', path.name)} | {_text(row, 'algorithm', '-')}"
