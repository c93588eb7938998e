"""A job whose first life leaves a whole training log, and whose next one logs that very fall but writes no log itself.

two_lives.py URI SCORES, beside trainer.py; a third argument, `touch`, has the next life write the log's file again.
"""

import json
import os
import sys
import time
from pathlib import Path

from trainer import METRIC, call, job_id, link, make_run, now_ms

HEADER = b'{"step":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}'


def main() -> None:
    uri, scores = sys.argv[1], [float(each) for each in sys.argv[2].split(",")]
    output = Path(f"out-{job_id()}")
    state = output / "checkpoint-80" / "trainer_state.json"
    if os.environ.get("SLURM_RESTART_COUNT", "0") == "0":
        state.parent.mkdir(parents=True)
        log = [{METRIC: score, "step": 10 * number} for number, score in enumerate(scores, 1)]
        state.write_text(json.dumps({"global_step": 80, "log_history": log}))
        (output / "run").write_text(make_run(uri, ""))
    run = (output / "run").read_text()
    link(run, f"evalstop_output={output}")
    if "SLURM_RESTART_COUNT" in os.environ:
        log_all(uri, run, output, scores, state if "touch" in sys.argv else None)
    time.sleep(600)


def log_all(uri: str, run: str, output: Path, scores: list[float], state: Path | None) -> None:
    for number, score in enumerate(scores, 1):
        if state is not None:
            state.touch()
        weights = len(HEADER).to_bytes(8, "little") + HEADER + number.to_bytes(8, "little")
        (output / f"step_{10 * number}.safetensors").write_bytes(weights)
        call(uri, "runs/log-metric", run_id=run, key=METRIC, value=score, step=10 * number, timestamp=now_ms())
        time.sleep(0.7)


if __name__ == "__main__":
    main()
