"""A training script that knows nothing of Slurm or evalstopd: plain MLflow, and checkpoints that rotate.

plain_trainer.py SCORES PACE_S LINGER_S; a run in MLFLOW_RUN_ID is gone on with.
"""

import os
import sys
import time
from pathlib import Path

import mlflow
from trainer import METRIC, save


def main() -> None:
    scores, pace_s, linger_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    output = Path(f"out-{os.getpid()}-{time.time_ns()}")
    log: list[dict[str, float]] = []
    with mlflow.start_run():
        mlflow.log_param("output_dir", str(output))
        for number, score in enumerate(scores.split(","), 1):
            mlflow.log_metric(METRIC, float(score), step=number * 10)
            log.append({METRIC: float(score), "step": number * 10})
            save(output, number * 10, log)
            time.sleep(pace_s)
        time.sleep(linger_s)


if __name__ == "__main__":
    main()
