"""CSV: one eval a line, any number of runs in a file."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from evalstopd.core.model import Mode
from evalstopd.errors import WrongUsage
from evalstopd.report.replay.history import LABELS, History, evals_of
from evalstopd.report.replay.labels import labels
from evalstopd.report.replay.sources.series import Pick, guessed_mode

_Rows = list[Mapping[str, str]]
_WORDS = {"0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


def read_csv(path: Path, pick: Pick) -> Iterator[History]:
    """Yield one history a run and metric, its evals in the order of their steps.

    Columns: `step` and `value`; where there: `run`, `metric`, `stderr`, `source`, `family`, `higher_is_better`,
    `primary` and the labels. Of lines of the same step the last counts. Raises WrongUsage where a needed column is
    missing or a line is no eval.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.DictReader(file)
        missing = {"step", "value"} - set(lines.fieldnames or ())
        if missing:
            raise WrongUsage(f"{path}: no column {', '.join(sorted(missing))}")
        runs: dict[tuple[str, str], _Rows] = {}
        for row in lines:
            runs.setdefault((row.get("run") or path.stem, row.get("metric") or "score"), []).append(row)
    for (run, metric), rows in runs.items():
        if pick.metric in ("", metric):
            yield _history(path, run, metric, rows, pick)


def _history(path: Path, run: str, metric: str, rows: _Rows, pick: Pick) -> History:
    try:
        scores = [float(row["value"]) for row in rows]
        errors = [float(row["stderr"]) if row.get("stderr") else None for row in rows]
        evals = evals_of([float(row["step"]) for row in rows], scores, errors)
        first = rows[0]
        higher, primary = _flag(first, "higher_is_better"), _flag(first, "primary")
    except (TypeError, ValueError) as error:
        raise WrongUsage(f"{path}, run {run[:40]!a}: {error}") from None
    mode = pick.mode or (guessed_mode(metric) if higher is None else Mode.MAX if higher else Mode.MIN)
    given = {name: first[name] for name in LABELS if first.get(name)}
    shape = given or labels([each.score for each in evals], mode)
    source, family = first.get("source") or path.name, first.get("family") or "csv"
    return History(run, source, family, metric, mode, evals, shape, primary=primary is not False)


def _flag(row: Mapping[str, str], key: str) -> bool | None:
    """Return what a cell says; None where it is empty or not there."""
    told = (row.get(key) or "").strip().lower()
    if told and told not in _WORDS:
        raise ValueError(f"{key} is true or false, not {told[:40]!a}")
    return _WORDS.get(told)
