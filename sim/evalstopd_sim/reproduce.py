"""What `reproduce` does: run experiments, and write their tables, plots and the report."""

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from evalstopd.errors import WrongUsage
from evalstopd.report.cells import write_table
from evalstopd_sim.arms import Arm, Sample, Setting
from evalstopd_sim.array import array
from evalstopd_sim.bounds import MOST_PROCESSES, MOST_SEEDS, whole
from evalstopd_sim.experiments import Experiment, Point, experiments
from evalstopd_sim.plots import draw
from evalstopd_sim.pool import Mapper, Task, workers
from evalstopd_sim.report import html_report, markdown_report
from evalstopd_sim.rows import SCORES, Row, as_json, rows

Found = Mapping[str, Mapping[str, list[Row]]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which experiments, on how many seeds and processes, and where they go.

    `slurm`: run the seeds as a job array with these options of sbatch; None: on this machine.
    """

    names: tuple[str, ...]
    seeds: int
    processes: int
    out: Path
    slurm: tuple[tuple[str, str], ...] | None = None

    def workers(self, tasks: int) -> AbstractContextManager[Mapper]:
        """Return what runs so many tasks."""
        if self.slurm is None:
            return workers(min(self.processes, tasks))
        return array(self.out / "slurm", dict(self.slurm))


def reproduce(wanted: Wanted, tick: Callable[[int, int], None]) -> list[Path]:
    """Run everything, then write everything; return the files written. `tick` hears of each task (done, of).

    Raises WrongUsage, before anything is run, for an unknown experiment or a place that cannot be written to.
    """
    try:
        chosen = experiments(wanted.names)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    # Intervals and tests need two seeds.
    whole("--seeds", wanted.seeds, MOST_SEEDS, 2)
    whole("--jobs", wanted.processes, MOST_PROCESSES)
    _check_writable(wanted.out)
    found = run(chosen, wanted, tick)
    files = _files(chosen, found, wanted.seeds)
    try:
        return [_write(wanted.out / name, content) for name, content in files.items()]
    except OSError as error:
        raise WrongUsage(f"--out {wanted.out}: {error.strerror}") from None


def run(chosen: Sequence[Experiment], wanted: Wanted, tick: Callable[[int, int], None]) -> Found:
    """Run the experiments; a world that several of them need is run once."""
    tasks = _tasks(chosen, wanted.seeds)
    samples: dict[tuple[Setting, int, Arm], Sample] = {}
    with wanted.workers(len(tasks)) as go:
        for place, (task, result) in enumerate(zip(tasks, go(tasks), strict=True), start=1):
            samples |= {(task.setting, task.seed, arm): each for arm, each in zip(task.arms, result, strict=True)}
            tick(place, len(tasks))
    return {each.name: {point.at: _rows(point, wanted.seeds, samples) for point in each.points} for each in chosen}


def _tasks(chosen: Sequence[Experiment], seeds: int) -> list[Task]:
    arms: dict[tuple[Setting, int], dict[Arm, None]] = {}
    for experiment in chosen:
        for point in experiment.points:
            for seed in range(seeds):
                arms.setdefault((point.setting, seed), {}).update(dict.fromkeys(point.arms))
    return [Task(setting, seed, tuple(needed)) for (setting, seed), needed in arms.items()]


def _rows(point: Point, seeds: int, samples: Mapping[tuple[Setting, int, Arm], Sample]) -> list[Row]:
    by_seed = [[samples[point.setting, seed, arm] for arm in point.arms] for seed in range(seeds)]
    return rows(point.arms, by_seed)


def _files(chosen: Sequence[Experiment], found: Found, seeds: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for experiment in chosen:
        points = found[experiment.name]
        files[f"{experiment.name}/table.csv"] = table_csv(points).encode()
        files[f"{experiment.name}/table.json"] = table_json(experiment, points, seeds).encode()
        pictures = draw(experiment, points)
        files |= {f"{experiment.name}/plot.{kind}": picture for kind, picture in pictures.items()}
    files["report.md"] = markdown_report(chosen, found, seeds).encode()
    files["report.html"] = html_report(chosen, found, seeds).encode()
    return files


def table_csv(points: Mapping[str, Sequence[Row]]) -> str:
    """Return all rows of an experiment as CSV: the scores' means, then the changes with intervals and p-values."""
    changed = ("jct_mean_s", "jct_kept_mean_s", "w1_gpu_h", "w3_gpu_h")
    heads = [f"{name}_change_{part}" for name in changed for part in ("percent", "ci95_low", "ci95_high", "p_value")]
    out = io.StringIO()
    lines: list[list[object]] = [["at", "base", "detector", "seeds", *SCORES, *heads]]
    for at, each in points.items():
        for row in each:
            changes = [row.changes.get(name) for name in changed]
            cells = [v for c in changes for v in ((c.mean, c.low, c.high, c.p_value) if c else ("",) * 4)]
            lines.append([at, row.arm.base, row.label, row.seeds, *(row.means[name] for name in SCORES), *cells])
    write_table(out, lines)
    return out.getvalue()


def table_json(experiment: Experiment, points: Mapping[str, Sequence[Row]], seeds: int) -> str:
    """Return all rows of an experiment as JSON."""
    settings = {
        "experiment": experiment.name,
        "seeds": seeds,
        "clusters": {point.at: point.setting.cluster.words for point in experiment.points},
    }
    flat = [{"at": at, **as_json(row)} for at, each in points.items() for row in each]
    return json.dumps({"settings": settings, "rows": flat}, indent=2, allow_nan=False) + "\n"


def _check_writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(f"--out {out}: {error.strerror}") from None
    if not os.access(out, os.W_OK):
        raise WrongUsage(f"--out {out}: cannot be written to")


def _write(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
