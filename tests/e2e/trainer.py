"""A training job as evalstopd meets it, without the training: logs scores, saves and rotates checkpoints.

Runs by the system's Python alone, as a Slurm job: trainer.py URI SCORES PACE_S [--comment WORDS] [--run ID] [--models]
[--beside SCORES [--lag EVALS]] [--folder-by param|comment|nothing]
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import time
import urllib.request
from pathlib import Path

METRIC = "eval/score"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("uri")
    parser.add_argument("scores", type=lambda text: [float(each) for each in text.split(",")])
    parser.add_argument("pace_s", type=float)
    parser.add_argument("--comment", default="", help="the owner's words; the run is added to them")
    parser.add_argument("--run", default="", help="name this run in the comment instead of an own one")
    parser.add_argument("--metric", default=METRIC)
    parser.add_argument("--linger-s", type=float, default=60.0)
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint of an earlier life")
    parser.add_argument("--models", action="store_true", help="log each checkpoint as a model, save no file")
    parser.add_argument("--beside", type=lambda text: [float(each) for each in text.split(",")], default=[],
                        help="the scores on a second dataset: the first is `clean`, this one `noisy`")  # fmt: skip
    parser.add_argument("--lag", type=int, default=0, help="by how many evals `clean` is evaluated after `noisy`")
    parser.add_argument("--folder-by", choices=("param", "comment", "nothing"), default="param",
                        help="what tells where the checkpoints lie")  # fmt: skip
    options = parser.parse_args()
    output = Path(f"out-{job_id()}")
    run, done = resumed(output) if options.resume else ("", 0)
    experiment = make_experiment(options.uri) if options.models else "0"
    run = run or make_run(options.uri, str(output) if options.folder_by == "param" else "", experiment)
    words = f"{options.comment} evalstop_output={output}" if options.folder_by == "comment" else options.comment
    link(options.run or run, words)
    output.mkdir(exist_ok=True)
    (output / "run").write_text(run)
    log: list[dict[str, float]] = []
    model = make_model(options.uri, "0", run)["model_id"] if options.beside else ""
    for number, score in enumerate(options.scores, 1):
        step = number * 10
        log.append({options.metric: score, "step": step})
        if step <= done:
            continue
        for dataset, at in [("noisy", number), ("clean", number - options.lag)] if model else [("", number)]:
            scores = options.beside if dataset == "noisy" else options.scores
            more = {"model_id": model, "dataset_name": dataset, "dataset_digest": dataset[:1]} if dataset else {}
            if at >= 1:
                call(options.uri, "runs/log-metric", run_id=run, key=options.metric, value=scores[at - 1],
                     step=10 * at, timestamp=now_ms(), **more)  # fmt: skip
        if options.models:
            log_model(options.uri, experiment, run, step)
        else:
            save(output, step, log)
        time.sleep(options.pace_s)
    time.sleep(options.linger_s)


def resumed(output: Path) -> tuple[str, int]:
    """Return the run and the step of the newest checkpoint that an earlier life left, and note that it is used."""
    steps = [int(path.name.partition("-")[2]) for path in output.glob("checkpoint-*")]
    if not steps:
        return "", 0
    (output / "resumed").write_text(str(max(steps)))
    return (output / "run").read_text(), max(steps)


def job_id() -> str:
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]


def make_experiment(uri: str) -> str:
    """Make an experiment whose artifacts the server keeps."""
    name = f"models-{job_id()}"
    made = call(uri, "experiments/create", name=name, artifact_location=f"mlflow-artifacts:/{name}")
    return str(made["experiment_id"])


def make_model(uri: str, experiment: str, run_id: str, step: int = 0) -> dict[str, str]:
    """Make a logged model, the run's output of a step; return what MLflow says of it."""
    made = call(uri, "logged-models", experiment_id=experiment, name="model", source_run_id=run_id)["model"]["info"]
    call(uri, "runs/outputs", run_id=run_id, models=[{"model_id": made["model_id"], "step": step}])
    return made  # type: ignore[no-any-return]


def log_model(uri: str, experiment: str, run_id: str, step: int) -> None:
    """Log a checkpoint as MLflow's own client does: made, uploaded, then ready and the run's output of the step."""
    made = call(uri, "logged-models", experiment_id=experiment, name="model", source_run_id=run_id)["model"]["info"]
    place = made["artifact_uri"].removeprefix("mlflow-artifacts:/")
    address = f"{uri}/api/2.0/mlflow-artifacts/artifacts/{place}/model.pt"
    urllib.request.urlopen(urllib.request.Request(address, b"weights", method="PUT"), timeout=30).close()
    model_id = made["model_id"]
    call(uri, f"logged-models/{model_id}", "PATCH", model_id=model_id, status="LOGGED_MODEL_READY")
    call(uri, "runs/outputs", run_id=run_id, models=[{"model_id": model_id, "step": step}])


def make_run(uri: str, output: str, experiment: str = "0") -> str:
    tags = [{"key": "slurm.job_id", "value": os.environ["SLURM_JOB_ID"]}]
    made = call(uri, "runs/create", experiment_id=experiment, start_time=now_ms(), tags=tags)
    run_id: str = made["run"]["info"]["run_id"]
    if output:
        call(uri, "runs/log-batch", run_id=run_id, metrics=[], params=[{"key": "output_dir", "value": output}], tags=[])
    return run_id


def link(run_id: str, words: str) -> None:
    """Say which run is the job's; Slurm's "DB index is being set" (accounting is slow, or hangs) means: ask again."""
    comment = f"mlflow_run={run_id} {words}".strip()
    command, end_s = ["scontrol", "update", f"JobId={job_id()}", f"Comment={comment}"], time.monotonic() + 60
    while subprocess.run(command, check=False).returncode:
        if time.monotonic() > end_s:
            raise SystemExit("the comment could not be set within a minute")
        time.sleep(1)


def save(output: Path, step: int, log: list[dict[str, float]]) -> None:
    folder = output / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)  # a life that starts anew writes over what the one before left
    header = json.dumps({"step": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<q", step))
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": log}))
    saved = sorted(output.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))
    for old in saved[:-2]:
        shutil.rmtree(old)


def call(uri: str, route: str, method: str = "POST", **fields: object) -> dict:  # type: ignore[type-arg]
    headers = {"Content-Type": "application/json"}
    address, body = f"{uri}/api/2.0/mlflow/{route}", json.dumps(fields).encode()
    request = urllib.request.Request(address, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)  # type: ignore[no-any-return]


def now_ms() -> int:
    return int(time.time() * 1000)


if __name__ == "__main__":
    main()
