"""An MLflow file store (mlruns/<experiment>/<run>/metrics/<key>): plain text, read without MLflow."""

from collections.abc import Iterator
from pathlib import Path

from evalstopd.core.binding import CLUSTER_TAG, JOB_ID_TAG
from evalstopd.core.model import Point
from evalstopd.report.replay.history import History
from evalstopd.report.replay.sources.series import Origin, Pick, histories, job_of
from evalstopd.report.replay.sources.walk import files_below

_METRICS, _TAGS = "metrics", "tags"


def run_folders(folder: Path) -> list[Path]:
    """Return the runs of a file store: folders with a meta.yaml and a folder of metrics."""
    metas = files_below(folder, lambda name: name == "meta.yaml")
    return [meta.parent for meta in metas if (meta.parent / _METRICS).is_dir()]


def read_file_store(folder: Path, pick: Pick) -> Iterator[History]:
    """Yield the histories of each run of the store."""
    for run in run_folders(folder):
        metrics = run / _METRICS
        series = {
            str(path.relative_to(metrics)): list(_points(run.name, path))
            for path in files_below(metrics, lambda _: True)
        }
        job = job_of(_tags(run))
        yield from histories(Origin(run.name, f"experiment {run.parent.name}", "mlflow", job, timed=True), series, pick)


def _tags(run: Path) -> dict[str, str]:
    """Return the tags that name a job; each lies in a file of its own."""
    wanted = (JOB_ID_TAG, CLUSTER_TAG)
    files = files_below(run / _TAGS, lambda name: name in wanted)
    return {path.name: path.read_text(encoding="utf-8", errors="replace") for path in files}


def _points(run_id: str, path: Path) -> Iterator[Point]:
    """Yield the points of a metric's file, one a line: timestamp in ms, value, step (and more in newer versions)."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        parts = line.split()
        try:
            yield Point(run_id, int(parts[2]), float(parts[1]), int(parts[0]))
        except (IndexError, ValueError):
            continue
