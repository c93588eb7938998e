"""What the figures must keep to, and how they are told."""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMITS: Mapping[str, float] = {
    "idle_s": 1.0,
    "idle_scheduler_calls": 2,
    "idle_history_reads": 0,
    "due_calls": 2,
    "due_ratio": 1.5,
    "all_ratio": 1.2,
    "memory_mb": 200,
    "stop_over_limit_s": 0,
}
"""The most that each figure may be; ratios are to the bare calls of MLflow's bulk route, in the same run."""


def machine() -> str:
    """Name the machine as far as it matters."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{platform.machine()}, {os.cpu_count()} cores, {memory_gb:.0f} GB, Python {platform.python_version()}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so large a share of them does not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def missed(figures: Mapping[str, object], limits: Mapping[str, float]) -> list[str]:
    """Return in words which limits were passed; a figure that is not there was not kept to."""
    found = []
    for name, limit in limits.items():
        value = figures.get(name)
        if not isinstance(value, (int, float)) or not value <= limit:
            found.append(f"{name}: {value}, limit {limit:g}")
    return found


def tell(figures: Mapping[str, object], limits: Mapping[str, float], file: Path) -> int:
    """Print the figures, write them as JSON, and return the exit code: 1 where a limit was passed."""
    file.write_text(json.dumps({"machine": machine(), **figures, "limits": dict(limits)}, indent=2) + "\n")
    print(machine())
    for name, value in figures.items():
        print(f"{name:24} {value:.3f}" if isinstance(value, float) else f"{name:24} {value}")
    beyond = missed(figures, limits)
    print("every limit was kept" if not beyond else "BEYOND ITS LIMIT: " + "; ".join(beyond))
    return 1 if beyond else 0


def medians(rows: Sequence[Sequence[float]], together: int = 1) -> list[float]:
    """Return the median of each column, over the means of so many rows each.

    A worker of the server looks for garbage for a fifth of a second at every second or third call: a median of single
    calls is either of the two, by chance.
    """
    groups = [rows[start : start + together] for start in range(0, len(rows), together)]
    means = [[statistics.fmean(column) for column in zip(*group, strict=True)] for group in groups]
    return [statistics.median(column) for column in zip(*means, strict=True)]
