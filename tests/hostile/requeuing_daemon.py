"""The daemon whose every scancel comes right after a requeue of the same jobs, for tests."""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evalstopd.adapters.slurm.run import ProcessRunner, succeed
from evalstopd.daemon import Daemon
from evalstopd.log import start_log
from evalstopd.loop import Loop
from evalstopd.settings import load_settings
from evalstopd.wiring.loop import make_loop

# Whether the requeued jobs run again by then: a test changes this word.
RUN_AGAIN = False
PATIENCE_S = 90.0


class Requeuing:
    """A cluster whose jobs are requeued between the last look and the cancel."""

    def __init__(self, cluster: object) -> None:
        self._cluster = cluster
        self._run = ProcessRunner(conf=os.environ["SLURM_CONF"], timeout_s=60)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Requeue, then cancel as asked."""
        for job_id in job_ids:
            succeed(self._run(("scontrol", "requeue", job_id), {}), "scontrol requeue")
            if RUN_AGAIN:
                self._wait_for(job_id, "PENDING")
                time.sleep(2.0)  # a node refuses the start of a job that it ended within the same second
                succeed(self._run(("scontrol", "update", f"JobId={job_id}", "StartTime=now"), {}), "scontrol update")
                self._wait_for(job_id, "RUNNING")
        self._cluster.cancel(job_ids)  # type: ignore[attr-defined]

    def _wait_for(self, job_id: str, state: str) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while succeed(self._run(("squeue", "-h", "-j", job_id, "-o", "%T"), {}), "squeue").strip() != state:
            if time.monotonic() > end_s:
                raise TimeoutError(f"job {job_id} is not {state}")
            time.sleep(0.1)


def main() -> None:
    settings = load_settings(None)
    start_log("INFO")
    stopping = threading.Event()
    loop = make_loop(settings, stopping)
    ports = replace(loop.ports, cluster=Requeuing(loop.ports.cluster))
    Daemon(Loop(ports, loop.stance).tick, settings.daemon.tick_s, stopping).run()


main()
