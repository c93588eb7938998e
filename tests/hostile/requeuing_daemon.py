"""The daemon whose every scancel comes right after a requeue of the same jobs, for tests."""

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evalstopd.adapters.slurm.run import ProcessRunner, succeed
from evalstopd.daemon import Daemon
from evalstopd.log import start_log
from evalstopd.loop import Loop
from evalstopd.settings import load_settings
from evalstopd.wiring import make_loop


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
        self._cluster.cancel(job_ids)  # type: ignore[attr-defined]


def main() -> None:
    settings = load_settings(None)
    start_log("INFO")
    stopping = threading.Event()
    loop = make_loop(settings, stopping)
    ports = replace(loop.ports, cluster=Requeuing(loop.ports.cluster))
    Daemon(Loop(ports, loop.stance).tick, settings.daemon.tick_s, stopping).run()


main()
