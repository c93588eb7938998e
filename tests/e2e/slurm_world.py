"""A real Slurm cluster as the world of the Cluster contract: real users submit real jobs."""

import pwd
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from demo.rig import users
from demo.rig.cluster import Cluster as Rig

from evalstopd.adapters.slurm import SlurmCluster
from evalstopd.adapters.slurm.run import Answer, ProcessRunner

PATIENCE_S = 90.0
POLL_S = 0.1
SECOND_S = 1.1
# Ends when its file appears, and writes down each USR1.
SCRIPT = """\
#!/bin/bash
me=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
trap 'echo USR1 >>signals.'$me USR1
touch started.${SLURM_RESTART_COUNT:-0}.$me
until [ -e finish.$me ]; do sleep 0.2; done
"""


class AsUser:
    """Runs the adapter's commands as another user of the machine, as the daemon's account would."""

    def __init__(self, rig: Rig, user: str) -> None:
        self._user = user
        self._run = ProcessRunner(conf=rig.env["SLURM_CONF"])

    def __call__(self, argv: Sequence[str], env: Mapping[str, str], /, feed: str = "") -> Answer:
        return self._run(["runuser", "-u", self._user, "--", *argv], env, feed=feed)


class SlurmWorld:
    """The rig's users and jobs; `cluster` is what the daemon's account, an Operator, sees and may do."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.cluster = SlurmCluster(run=AsUser(rig, users.DAEMON))
        self.alice, self.bob = (pwd.getpwnam(name).pw_uid for name in (users.ALICE, users.BOB))
        self._owners: dict[str, int] = {}

    def seen_by(self, user: str) -> SlurmCluster:
        """Return the cluster as one of the users sees it."""
        return SlurmCluster(run=AsUser(self.rig, user))

    def submit(self, uid: int, gpus: int = 1, comment: str = "", *options: str) -> str:
        job_id = self.submit_only(uid, f"--gpus={gpus}", f"--comment={comment}", *options)
        self._started(job_id, 0)
        return job_id

    def submit_fixed(self, uid: int) -> str:
        return self.submit(uid, 1, "", "--no-requeue")

    def submit_waiting(self, uid: int) -> str:
        return self.submit_only(uid, "--hold", "--gpus=1")

    def submit_array(self, uid: int, tasks: int) -> tuple[str, ...]:
        array = self.submit_only(uid, "--gpus=1", f"--array=0-{tasks - 1}")
        job_ids = tuple(f"{array}_{task}" for task in range(tasks))
        for job_id in job_ids:
            self._owners[job_id] = uid
            self._started(job_id, 0)
        return job_ids

    def submit_only(self, uid: int, *options: str) -> str:
        job_id = self.rig.sbatch(pwd.getpwuid(uid).pw_name, SCRIPT, "--output=/dev/null", *options)
        self._owners[job_id] = uid
        return job_id

    def finish(self, job_id: str) -> None:
        self._file(job_id, "finish").touch()
        self.until(lambda: job_id not in self._listed())

    def requeue(self, job_id: str) -> None:
        restarts = self.cluster.look([job_id])[job_id].restarts
        # Slurm counts submit times in whole seconds: lives of one second cannot be told apart.
        time.sleep(SECOND_S)
        self.rig.run("scontrol", "requeue", job_id)
        self.until(lambda: self._state(job_id) == "PENDING")
        # Lifts the two minutes that a requeued job waits otherwise.
        self.rig.start_again(job_id)
        self._started(job_id, restarts + 1)

    def signals(self, job_id: str) -> list[str]:
        file = self._file(job_id, "signals")
        return file.read_text().split() if file.exists() else []

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, "what was waited for did not come"
            time.sleep(POLL_S)

    @contextmanager
    def down(self) -> Iterator[None]:
        self.rig.stop_controller()
        try:
            yield
        finally:
            self.rig.start_controller()

    def clear(self) -> None:
        """End every job and wait until none is left."""
        for tries in count():
            if not self._listed():
                return
            assert tries < PATIENCE_S / POLL_S, "jobs do not go away"
            self.rig.run("scancel", f"--user={users.ALICE}")
            self.rig.run("scancel", f"--user={users.BOB}")
            time.sleep(POLL_S)

    def _started(self, job_id: str, restarts: int) -> None:
        self.until(lambda: self._file(job_id, f"started.{restarts}").exists())

    def _file(self, job_id: str, kind: str) -> Path:
        return self.rig.work(pwd.getpwuid(self._owners[job_id]).pw_name) / f"{kind}.{job_id}"

    def _listed(self) -> list[str]:
        return self.rig.squeue("--array", "-o", "%i").split()

    def _state(self, job_id: str) -> str:
        return self.rig.squeue("-j", job_id, "-o", "%T").strip()
