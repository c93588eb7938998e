"""`reproduce` with a progress bar on the terminal."""

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evalstopd.errors import WrongUsage
from evalstopd_sim.plots import MISSING, available
from evalstopd_sim.reproduce import Wanted, reproduce


@dataclass(frozen=True, slots=True)
class Where:
    """Where the runs run, as given on the command line: `processes` or `slurm`, and options of sbatch."""

    executor: str = "processes"
    options: tuple[str, ...] = ()

    @property
    def slurm(self) -> tuple[tuple[str, str], ...] | None:
        """Return the options of sbatch; None for this machine."""
        if self.executor not in ("processes", "slurm"):
            raise WrongUsage(f"--executor is processes or slurm, not {self.executor!a}")
        if bad := [each for each in self.options if not each.partition("=")[2]]:
            raise WrongUsage(f"--slurm is NAME=VALUE, not {bad[0]!a}")
        pairs = tuple((each.partition("=")[0], each.partition("=")[2]) for each in self.options)
        return pairs if self.executor == "slurm" else None


def with_progress(names: tuple[str, ...], seeds: int, processes: int, out: str, where: Where) -> str:
    """Run the experiments and return what was written, for the user. Raises WrongUsage for an unknown executor."""
    wanted = Wanted(names, seeds, processes or os.cpu_count() or 1, Path(out), where.slurm)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("worlds run", total=None)
        files = reproduce(wanted, lambda done, total: bar.update(task, completed=done, total=total))
    lines = [f"{len(files)} files written", *(str(path) for path in files if path.name.startswith("report."))]
    return "\n".join([*lines, *([] if available() else [MISSING])])
