"""Where ended runs are read from; each kind in one file, told apart by what is on the disk."""

from collections.abc import Callable, Iterator
from pathlib import Path

from evalstopd.errors import WrongUsage
from evalstopd.report.replay.history import History
from evalstopd.report.replay.sources.jsonl import read_jsonl
from evalstopd.report.replay.sources.mlflow_files import read_file_store, run_folders
from evalstopd.report.replay.sources.series import Pick
from evalstopd.report.replay.sources.table import read_csv
from evalstopd.report.replay.sources.tensorboard import MARK, read_event_files
from evalstopd.report.replay.sources.tracker import SCHEME, Tracker, read_experiment
from evalstopd.report.replay.sources.trainer_state import FILE, read_trainer_states
from evalstopd.report.replay.sources.walk import files_below

KNOWN = (
    "*.jsonl, *.csv, a folder with trainer_state.json, with TensorBoard event files, an MLflow file store, "
    "mlflow:EXPERIMENT"
)
__all__ = ["KNOWN", "Pick", "Tracker", "read_source"]


def read_source(
    path: Path, pick: Pick | None = None, tracker: Callable[[], Tracker] | None = None
) -> Iterator[History]:
    """Yield the histories of a source. Raises WrongUsage, naming it, where there is nothing that can be read.

    `mlflow:EXPERIMENT` is read from the tracker, which is only opened for it. A folder is read as the first kind that
    is found in it: MLflow file store, trainer states, event files.
    """
    try:
        yield from _read(path, pick or Pick(), tracker)
    except OSError as error:
        raise WrongUsage(f"{error.filename or path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise WrongUsage(f"{path}: not UTF-8 text (byte {error.start}: {error.reason})") from None


def _read(path: Path, pick: Pick, tracker: Callable[[], Tracker] | None) -> Iterator[History]:
    named = SCHEME.fullmatch(str(path))
    if named is not None and tracker is not None:
        return read_experiment(tracker(), named["experiment"], pick)
    if path.is_file() and path.suffix == ".jsonl":
        return read_jsonl(path, pick)
    if path.is_file() and path.suffix == ".csv":
        return read_csv(path, pick)
    if path.is_dir() and run_folders(path):
        return read_file_store(path, pick)
    if path.is_dir() and any(files_below(path, lambda name: name == FILE)):
        return read_trainer_states(path, pick)
    if path.is_dir() and any(files_below(path, lambda name: MARK in name)):
        return read_event_files(path, pick)
    if named is None:
        path.stat()  # what is not there is said to be so
    raise WrongUsage(f"{path}: no evaluation curves; known: {KNOWN}")
