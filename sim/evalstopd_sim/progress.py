"""`reproduce` with a progress bar on the terminal."""

import os
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evalstopd_sim.plots import MISSING, available
from evalstopd_sim.reproduce import Wanted, reproduce


def with_progress(names: tuple[str, ...], seeds: int, processes: int, out: str) -> str:
    """Run the experiments and return what was written, for the user."""
    wanted = Wanted(names, seeds, processes or os.cpu_count() or 1, Path(out))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("worlds run", total=None)
        files = reproduce(wanted, lambda done, total: bar.update(task, completed=done, total=total))
    lines = [f"{len(files)} files written", *(str(path) for path in files if path.name.startswith("report."))]
    return "\n".join([*lines, *([] if available() else [MISSING])])
