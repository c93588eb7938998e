"""All training jobs of the embedded demo in one process, run as their owner: recorded runs, played when told to.

Each line on stdin is a JSON list of orders, answered by one line once all are done:
`start` makes a run, `eval` logs the next evaluation and writes its checkpoint, `finish` ends the run.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from mini_rlhf.checkpoints import Checkpoints
from mini_rlhf.points import EvalPoint
from mini_rlhf.recorded import Recording, find

EXPERIMENT = "mini_rlhf"
KEPT = 2
TIME_LIMIT_S = 30.0


class Tracking:
    """The few calls of MLflow's REST API that a training script makes."""

    def __init__(self, uri: str) -> None:
        self._http = httpx.Client(base_url=f"{uri}/api/2.0/mlflow", timeout=TIME_LIMIT_S, trust_env=False)
        self._experiment = self._post("experiments/create", name=EXPERIMENT)["experiment_id"]

    def start(self, tags: dict[str, str], params: dict[str, object]) -> str:
        """Make a run and return its id."""
        asked = {"experiment_id": self._experiment, "start_time": _now_ms(), "tags": _pairs(tags)}
        run_id = str(self._post("runs/create", **asked)["run"]["info"]["run_id"])
        self._post("runs/log-batch", run_id=run_id, params=_pairs(params))
        return run_id

    def log(self, run_id: str, point: EvalPoint) -> None:
        """Log one evaluation."""
        at = {"timestamp": _now_ms(), "step": point.step}
        metrics = [{"key": key, "value": value, **at} for key, value in point.metrics().items()]
        self._post("runs/log-batch", run_id=run_id, metrics=metrics)

    def finish(self, run_id: str) -> None:
        """Set a run FINISHED, as a script does at its end."""
        self._post("runs/update", run_id=run_id, status="FINISHED", end_time=_now_ms())

    def _post(self, path: str, **body: object) -> dict[str, Any]:
        answer = self._http.post(f"/{path}", json=body)
        answer.raise_for_status()
        return dict(answer.json())


@dataclass(slots=True)
class Training:
    """One run being played."""

    run_id: str
    recording: Recording
    checkpoints: Checkpoints
    points: Iterator[EvalPoint]
    history: list[EvalPoint] = field(default_factory=list)


@dataclass(slots=True)
class Trainer:
    """Does as it is told, for every job by its id."""

    tracking: Tracking
    work: Path
    trainings: dict[str, Training] = field(default_factory=dict)

    def do(self, order: dict[str, Any]) -> str:
        """Carry out one order; returns the run it was about."""
        if order["do"] == "start":
            self._start(order)
        training = self.trainings[order["job"]]
        if order["do"] == "eval":
            self._evaluate(training)
        elif order["do"] == "finish":
            self.tracking.finish(training.run_id)
        return training.run_id

    def _start(self, order: dict[str, Any]) -> None:
        job, recording = order["job"], find(order["kl"], order["seed"])
        output = self.work / job / "out"
        output.mkdir(parents=True)
        tags = {"slurm.job_id": job, "slurm.cluster": order["cluster"]}
        params = {"output_dir": str(output), "save_total_limit": KEPT, **recording.recipe, "replay": True}
        run_id = self.tracking.start(tags, params)
        self.trainings[job] = Training(run_id, recording, Checkpoints(output, KEPT), recording.play(0))

    def _evaluate(self, training: Training) -> None:
        point = next(training.points)
        self.tracking.log(training.run_id, point)
        training.history.append(point)
        training.checkpoints.save(training.history, training.recording.recipe, training.recording.save)


def _pairs(values: dict[str, Any]) -> list[dict[str, str]]:
    return [{"key": key, "value": str(value)} for key, value in values.items()]


def _now_ms() -> int:
    return int(time.time() * 1000)


def main(uri: str, work: str) -> None:
    trainer = Trainer(Tracking(uri), Path(work))
    for line in sys.stdin:
        print(json.dumps([trainer.do(order) for order in json.loads(line)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
