"""Sources as the real libraries write them: by MLflow and TensorBoard here, by Hugging Face's Trainer on record."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalstopd.core.noise import from_items
from evalstopd.report.replay.history import History, JobTag
from evalstopd.report.replay.sources import Pick, read_source
from tests.report.write_with_libraries import SCORES

TRAINER = Path(__file__).parent.parent / "data" / "hf_trainer"
WRITER = Path(__file__).with_name("write_with_libraries.py")
ITEMS = 97


def written(library: str, folder: Path) -> list[History]:
    """Return what replay reads of a folder that the library has just written."""
    # MLflow 3 writes to files only where that is asked for.
    environment = os.environ | {"MLFLOW_ALLOW_FILE_STORE": "true"}
    command = [sys.executable, str(WRITER), library, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(read_source(folder))


def scores(history: History) -> list[float]:
    return [round(each.score, 5) for each in history.evals]


def test_mlflows_file_store_gives_curve_job_times_and_items(tmp_path: Path) -> None:
    (found,) = written("mlflow", tmp_path / "mlruns")

    assert scores(found) == SCORES
    assert found.metric == "eval/accuracy"
    assert found.job == JobTag("17", "red")
    assert found.times_s == tuple(range(8))
    assert [each.stderr for each in found.evals] == [from_items(score, 400) for score in SCORES]


def test_tensorboards_writer_gives_both_forms_of_scalars(tmp_path: Path) -> None:
    plain, tensor = written("tensorboard", tmp_path)

    assert (plain.metric, tensor.metric) == ("eval/plain", "eval/tensor")
    assert scores(plain) == scores(tensor) == SCORES
    assert plain.times_s == tuple(100.0 + step for step in range(8))


def test_the_trainers_states_give_all_its_evals_with_their_errors() -> None:
    """The last checkpoint's history holds the earlier one's; 97 items an eval, which the Trainer tells by its speed."""
    found = {each.metric: each for each in read_source(TRAINER)}
    accuracy = found["eval_accuracy"]

    assert set(found) == {"eval_accuracy", "eval_loss"}
    assert accuracy.primary
    assert [each.step for each in accuracy.evals] == list(range(5, 65, 5))
    assert [each.stderr for each in accuracy.evals] == [from_items(each.score, ITEMS) for each in accuracy.evals]
    assert all(each.stderr is None for each in found["eval_loss"].evals)


def test_the_trainers_event_file_tells_the_same_as_its_states() -> None:
    (states,) = read_source(TRAINER, Pick("eval_accuracy"))
    (events,) = read_source(TRAINER / "runs", Pick("eval/accuracy"))

    assert scores(events) == scores(states)
    assert [each.stderr for each in events.evals] == pytest.approx([each.stderr for each in states.evals], rel=1e-6)
