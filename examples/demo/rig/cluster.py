"""A real Slurm cluster on one machine: munge, MariaDB, slurmdbd, slurmctld and one slurmd a node.

No systemd, no cgroups; GPUs are links to /dev/null, which Slurm counts and hands out like any other.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from . import processes
from .daemons import Daemons
from .errors import RigError
from .layout import Layout, Size
from .packages import PROGRAMS, missing_packages
from .ports import free_block

COMMAND_S = 60.0
DRAIN_S = 10.0
BETWEEN_LIVES_S = 2.1
STRANGER = "nobody"


class Cluster:
    """One private cluster below `directory`; several may run at once, each in a directory of its own.

    `start` takes over a directory whose last owner crashed: what still runs there is ended first. With the
    scheduler `builtin` no job passes one that waits; with `backfill` small ones may. A `crowded` cluster is for
    thousands of tasks: no Prolog gives its jobs a secret.
    """

    def __init__(
        self,
        directory: Path,
        *,
        nodes: int = 8,
        gpus: int = 8,
        cpus: int = 16,
        kill_wait_s: int = 3,
        port: int | None = None,
        database: bool = True,
        name: str = "evs",
        scheduler: str = "backfill",
        crowded: bool = False,
    ) -> None:
        self.name = name
        self._size = Size(name, nodes, gpus, cpus, kill_wait_s, database, scheduler, crowded)
        self._layout = Layout(directory.resolve(), port or free_block(nodes + 2))
        self._daemons = Daemons(self._layout, self.env)

    @property
    def directory(self) -> Path:
        return self._layout.root

    @property
    def site_key(self) -> Path:
        """The file of the key that the Prolog derives jobs' secrets from."""
        return self._layout.site_key

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to speak with this cluster, and nothing else."""
        return {"PATH": PROGRAMS, "SLURM_CONF": str(self._layout.conf), "LC_ALL": "C.UTF-8"}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Bring everything up and wait until all nodes are idle. Raises RigError; then nothing stays."""
        self._check_machine()
        self._daemons.stop_all()
        self._layout.make()
        self._layout.write(self._size, installed_version())
        self._check_traversable()
        try:
            self._start_parts()
        except BaseException:
            self._daemons.stop_all()
            raise

    def stop(self) -> None:
        """End all jobs and daemons of this directory; works from its pid files alone, and twice."""
        if processes.from_file(self._layout.run / "slurmctld.pid", self.directory):
            self._end_jobs()
        self._daemons.stop_all()

    def stop_controller(self) -> None:
        """Take slurmctld away; jobs go on."""
        self._daemons.stop_controller()

    def start_controller(self) -> None:
        self._daemons.start_controller()

    @contextmanager
    def accounting_down(self) -> Iterator[None]:
        """Take slurmdbd away for a while; the controller goes on, and keeps what it has to tell."""
        self._daemons.stop_accounting()
        try:
            yield
        finally:
            self._daemons.start_accounting()

    @contextmanager
    def accounting_hangs(self) -> Iterator[None]:
        """Let slurmdbd do nothing for a while: it takes connections, and answers none."""
        pid = processes.from_file(self._layout.run / "slurmdbd.pid", self.directory)
        if pid is None:
            raise RigError("slurmdbd does not run")
        processes.send(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            processes.send(pid, signal.SIGCONT)

    def running_processes(self) -> list[int]:
        """Return the ids of every process of this cluster."""
        return self._daemons.running()

    def run(self, *argv: str, timeout_s: float = COMMAND_S) -> str:
        """Run a Slurm command as root and return its output; raises RigError where it fails."""
        return self._checked(argv, self._call(argv, self.env, timeout_s, None, self.directory))

    def start_again(self, job_id: str) -> None:
        """Let a job that waits after its requeue start now, instead of in two minutes."""
        # A node refuses the start of a job that it ended within the same second (22.05: the job fails).
        time.sleep(BETWEEN_LIVES_S)
        self.run("scontrol", "update", f"JobId={job_id}", "StartTime=now")

    def add_account(self, account: str) -> None:
        """Create an account; one that exists is fine."""
        self._add("account", account)

    def add_user(self, user: str, account: str, admin_level: str | None = None) -> None:
        """Let a user submit under an account; `admin_level` is sacctmgr's: Operator or Administrator."""
        self._add("user", user, f"account={account}")
        if admin_level:
            self.run("sacctmgr", "-i", "modify", "user", user, "set", f"adminlevel={admin_level}")

    def as_user(
        self,
        user: str,
        argv: Sequence[str],
        *,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = COMMAND_S,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as that user, in a clean environment plus `env`; its exit code is the caller's."""
        work = self.work(user)
        environment = {**self.env, "HOME": str(work), "USER": user, "LOGNAME": user, **(env or {})}
        return self._call(["runuser", "-u", user, "--", *argv], environment, timeout_s, stdin, cwd or work)

    def work(self, user: str) -> Path:
        """Return the user's own folder in the rig, made at first use: home, and where jobs start."""
        folder = self._layout.work(user)
        if not folder.exists():
            folder.mkdir(mode=0o755)
            subprocess.run(["chown", f"{user}:", str(folder)], check=True, timeout=COMMAND_S)
        return folder

    def sbatch(self, user: str, script: str | Path, *options: str) -> str:
        """Submit a script, given as its text or its path, and return the id of the job or array."""
        text, path = (script, []) if isinstance(script, str) else (None, [str(script)])
        command = ["sbatch", "--parsable", *options, *path]
        answer = self._checked(command, self.as_user(user, command, stdin=text))
        return answer.strip().partition(";")[0]

    def squeue(self, *options: str) -> str:
        """List the queue. Asked for one job alone that the controller has forgotten, squeue fails: it is not in it."""
        try:
            return self.run("squeue", "-h", *options)
        except RigError as error:
            if "Invalid job id specified" in str(error):
                return ""
            raise

    def sacct(self, *options: str) -> str:
        return self.run("sacct", "-n", "-P", *options)

    def _start_parts(self) -> None:
        self._daemons.start_munge()
        if self._size.database:
            self._daemons.start_database()
            self._add("cluster", self.name)
        self._daemons.start_controller()
        self._daemons.start_nodes(self._size)

    def _add(self, kind: str, name: str, *more: str) -> None:
        command = ["sacctmgr", "-i", "add", kind, name, *more]
        done = self._call(command, self.env, COMMAND_S, None, self.directory)
        # What a directory that is used again knows already is an error to sacctmgr, and none here.
        if done.returncode and not self._knows(kind, name, *more):
            self._checked(command, done)

    def _knows(self, kind: str, name: str, *more: str) -> bool:
        where = [f"{kind}={name}", *more, f"format={kind}"]
        return name in self.run("sacctmgr", "-n", "-P", "list", "assoc", *where).split()

    def _end_jobs(self) -> None:
        # The controller may be hung: stop() ends the steps by their processes in any case.
        for options in (["--full", "--signal=KILL"], []):
            self._quietly("scancel", *options, "--state=RUNNING")
        self._quietly("scancel", "--state=PENDING")
        processes.wait_until(lambda: not self._quietly("squeue", "-h", "-t", "R,CG"), DRAIN_S, poll_s=0.2)

    def _quietly(self, *argv: str) -> str:
        try:
            return self._call(argv, self.env, DRAIN_S, None, self.directory).stdout
        except subprocess.TimeoutExpired:
            return ""

    def _check_machine(self) -> None:
        if os.geteuid() != 0:
            raise RigError("a real Slurm cluster needs root: it runs jobs as other users")
        if missing := missing_packages():
            raise RigError(f"packages of a Slurm cluster are missing: {', '.join(missing)}")

    def _check_traversable(self) -> None:
        probe = ["runuser", "-u", STRANGER, "--", "cat", str(self._layout.conf)]
        if self._call(probe, self.env, COMMAND_S, None, Path("/")).returncode:
            raise RigError(f"other users cannot reach {self.directory}: each folder above it must let them through")

    def _checked(self, argv: Sequence[str], done: subprocess.CompletedProcess[str]) -> str:
        if done.returncode:
            raise RigError(f"'{' '.join(argv)}' failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def _call(
        self, argv: Sequence[str], env: dict[str, str], timeout_s: float, stdin: str | None, cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, env=env, cwd=cwd, input=stdin or "", capture_output=True, text=True,
            errors="surrogateescape", timeout=timeout_s, check=False,
        )  # fmt: skip


def installed_version() -> tuple[int, int]:
    """Return the installed Slurm's major and minor number, (22, 5) say."""
    answer = subprocess.run(
        ["slurmctld", "-V"],
        env={"PATH": PROGRAMS},
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    found = re.search(r"(\d+)\.(\d+)", answer.stdout)
    if not found:
        raise RigError("slurmctld -V names no version")
    return int(found[1]), int(found[2])
