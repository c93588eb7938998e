"""Folders of HF Trainer and TRL: the log history that each checkpoint's trainer_state.json carries."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalstopd.core.model import Point
from evalstopd.report.replay.history import History
from evalstopd.report.replay.sources.series import Origin, Pick, histories
from evalstopd.report.replay.sources.walk import files_below

FILE = "trainer_state.json"


def read_trainer_states(folder: Path, pick: Pick) -> Iterator[History]:
    """Yield the histories of each run below a folder: the state with the longest history speaks for its run.

    A state that cannot be read (half written, not JSON) is passed over for the run's next one.
    """
    runs: dict[Path, list[Mapping[str, Any]]] = {}
    for path in files_below(folder, lambda name: name == FILE):
        log = _log(path)
        run = _run_folder(path)
        if log and len(log) > len(runs.get(run, ())):
            runs[run] = log
    for run, log in sorted(runs.items()):
        name = str(run.relative_to(folder)) if run != folder else folder.name
        yield from histories(Origin(name, folder.name, "trainer"), _series(log), pick)


def _run_folder(path: Path) -> Path:
    """Return the folder of the run: the one above a checkpoint's own."""
    return path.parent.parent if path.parent.name.startswith("checkpoint-") else path.parent


def _log(path: Path) -> list[Mapping[str, Any]]:
    try:
        log = json.loads(path.read_text(encoding="utf-8")).get("log_history", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    return [entry for entry in log if isinstance(entry, dict)] if isinstance(log, list) else []


def _series(log: list[Mapping[str, Any]]) -> dict[str, list[Point]]:
    series: dict[str, list[Point]] = {}
    for position, entry in enumerate(log):
        step = entry.get("step")
        if not isinstance(step, int):
            continue
        for key, value in entry.items():
            if isinstance(value, int | float) and key not in ("step", "epoch"):
                series.setdefault(key, []).append(Point("", step, float(value), position))
    return series
