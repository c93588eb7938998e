"""A job of the comparison: logs the scores it was given at the moments it was given, and writes tiny checkpoints.

Runs by the system's Python alone, as a Slurm job: trainer.py URI RUN FOLDER DURATION_S MARKS SCORES
"""

import json
import struct
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

METRIC = "eval/score"
TIME_LIMIT_S = 60.0


def main(uri: str, run: str, folder: str, duration_s: str, marks: str, scores: str) -> None:
    """Play one run; a late answer of the server moves no later eval."""
    begun_s = time.monotonic()
    for step, (mark_s, score) in enumerate(zip(marks.split(","), scores.split(","), strict=True), start=1):
        sleep_until(begun_s + float(mark_s))
        call(uri, "runs/log-metric", run_id=run, key=METRIC, value=float(score), step=step, timestamp=now_ms())
        save(Path(folder) / f"checkpoint-{step}", step)
    sleep_until(begun_s + float(duration_s))


def make_run(uri: str, folder: str) -> str:
    """Make the run of a job that is yet to be submitted, and return its id."""
    made = call(uri, "runs/create", experiment_id="0", start_time=now_ms(), tags=[])
    run_id = str(made["run"]["info"]["run_id"])
    call(uri, "runs/log-parameter", run_id=run_id, key="output_dir", value=folder)
    return run_id


def save(folder: Path, step: int) -> None:
    """Write a checkpoint as trainers do: the state file last."""
    folder.mkdir(parents=True)
    header = json.dumps({"step": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<q", step))
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))


def call(uri: str, route: str, **fields: object) -> dict[str, Any]:
    """Make one call of MLflow's REST API."""
    request = urllib.request.Request(
        f"{uri}/api/2.0/mlflow/{route}", json.dumps(fields).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
        return dict(json.load(answer))


def sleep_until(moment_s: float) -> None:
    """Sleep until a moment of the monotonic clock; one that is past is fine."""
    time.sleep(max(0.0, moment_s - time.monotonic()))


def now_ms() -> int:
    """Return the time as MLflow wants it."""
    return int(time.time() * 1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
