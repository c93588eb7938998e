"""A job that logs to MLflow and, by Lightning's own CSVLogger, to a table beside its checkpoints: URI SCORES [WORDS].

Beside trainer.py. Only the training and Lightning's loop are missing.
"""

import sys
import time
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger
from trainer import METRIC, call, job_id, link, make_run, now_ms

HEADER = b'{"step":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}'


def main() -> None:
    uri, scores = sys.argv[1], [float(each) for each in sys.argv[2].split(",")]
    logger = CSVLogger(f"out-{job_id()}")
    checkpoints = Path(logger.log_dir) / "checkpoints"
    checkpoints.mkdir(parents=True)
    run = make_run(uri, "")
    link(run, " ".join([f"evalstop_output={checkpoints}", *sys.argv[3:]]))
    for number, score in enumerate(scores, 1):
        step = 10 * number
        logger.log_metrics({"train_loss": 1 / number}, step - 5)
        logger.log_metrics({METRIC: score}, step)
        logger.save()
        weights = len(HEADER).to_bytes(8, "little") + HEADER + number.to_bytes(8, "little")
        (checkpoints / f"step_{step}.safetensors").write_bytes(weights)
        call(uri, "runs/log-metric", run_id=run, key=METRIC, value=score, step=step, timestamp=now_ms())
        time.sleep(1)
    time.sleep(600)


if __name__ == "__main__":
    main()
