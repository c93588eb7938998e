"""The daemons of a cluster, each started in the foreground's sight and waited for until it answers."""

import secrets
import subprocess
from collections.abc import Mapping

from . import processes
from .errors import RigError, last_lines
from .layout import Layout, Size
from .steps import supervisors

# Clients hang for many seconds where a daemon is not up yet: each try is cut short.
TRY_S = 5
MARIADB_OPTIONS = (
    "--skip-networking",
    "--skip-log-bin",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=900",
    # A rig's accounting need not outlive a power cut; this takes seconds off its start.
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=0",
)


class Daemons:
    """Starts and stops the parts of one cluster. All are marked as its own, by its directory."""

    def __init__(self, layout: Layout, environment: Mapping[str, str]) -> None:
        self._layout = layout
        self._environment = {
            **environment,
            **processes.marked(layout.root),
            # libmariadb's way to a private socket for the host "localhost".
            "MYSQL_UNIX_PORT": str(layout.database / "socket"),
        }
        self._children: list[subprocess.Popen[bytes]] = []

    def start_munge(self) -> None:
        folder = self._layout.munge
        key = folder / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(1024))
        self._launch(
            "munged",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/socket",
            f"--pid-file={self._layout.run}/munged.pid",
            f"--log-file={self._layout.log}/munged.log",
            f"--seed-file={folder}/seed",
        )
        self._wait("munged", ["munge", "-S", f"{folder}/socket", "-n", "-o", "/dev/null"], 30)

    def start_database(self) -> None:
        """Start MariaDB on a private socket, making its files first where there are none, and slurmdbd."""
        layout = self._layout
        if not (layout.database / "mysql").is_dir():
            self._launch(
                "mariadb-install-db",
                "--no-defaults",
                "--user=root",
                f"--datadir={layout.database}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *self._mariadb_options()[1:],
            )
        self._spawn(
            "mariadbd",
            "--no-defaults",
            "--user=root",
            f"--datadir={layout.database}",
            f"--socket={layout.database}/socket",
            f"--pid-file={layout.run}/mariadbd.pid",
            *self._mariadb_options(),
        )
        client = ["mariadb", "--no-defaults", "-S", f"{layout.database}/socket", "-u", "root", "-e"]
        self._wait("mariadbd", [*client, "create database if not exists evsrig"], 90)
        self.start_accounting()

    def _mariadb_options(self) -> tuple[str, ...]:
        # At its start a MariaDB removes every temporary table of the folder, those of another in it as well.
        return (*MARIADB_OPTIONS, f"--tmpdir={self._layout.database_scratch}")

    def start_accounting(self) -> None:
        self._spawn("slurmdbd", "-D")
        self._wait("slurmdbd", ["sacctmgr", "-n", "-i", "list", "cluster"], 90)

    def start_controller(self) -> None:
        self._launch("slurmctld", "-i")
        self._wait("slurmctld", ["scontrol", "ping"], 90)

    def start_nodes(self, size: Size) -> None:
        for number in range(size.nodes):
            (self._layout.root / "spool" / f"n{number}").mkdir(exist_ok=True)
            self._launch("slurmd", "-N", f"n{number}")
        processes.require(
            lambda: self._nodes_up() == size.nodes,
            60,
            lambda: f"only {self._nodes_up()} of {size.nodes} nodes came up; see {self._layout.log}",
        )

    def stop_controller(self) -> None:
        self._stop("slurmctld.pid")

    def stop_accounting(self) -> None:
        self._stop("slurmdbd.pid")

    def stop_all(self) -> None:
        """End the steps of jobs, then the daemons in order, then whatever else still carries the mark."""
        names = sorted(path.name for path in self._layout.run.glob("n*.pid"))
        self._end_steps()
        for batch in (names, ["slurmctld.pid"], ["slurmdbd.pid"], ["mariadbd.pid"], ["munged.pid"]):
            self._stop(*batch)
        processes.end(processes.all_marked(self._layout.root))
        while self._children:
            self._children.pop().wait(timeout=processes.END_S)

    def running(self) -> list[int]:
        """Return the ids of all processes of the cluster, the supervisors of job steps included."""
        return [*processes.all_marked(self._layout.root), *self._supervisors()]

    def _supervisors(self) -> list[int]:
        return supervisors(self._layout.root / "spool")

    def _end_steps(self) -> None:
        # A supervisor hangs where the controller cannot hear that its job ended: no patience.
        for pid in self._supervisors():
            processes.end([*processes.descendants(pid), pid], patience_s=0)

    def _pid(self, file: str) -> int | None:
        return processes.from_file(self._layout.run / file, self._layout.root)

    def _stop(self, *files: str) -> None:
        processes.end(pid for file in files if (pid := self._pid(file)))
        for file in files:
            (self._layout.run / file).unlink(missing_ok=True)

    def _nodes_up(self) -> int:
        command = ["sinfo", "-h", "-N", "-p", "gpu", "-t", "idle,mix,alloc", "-o", "%n"]
        try:
            answer = self._try(command)
        except subprocess.TimeoutExpired:
            return 0
        return len(answer.stdout.split())

    def _launch(self, *argv: str) -> None:
        """Run a program that ends by itself or puts itself into the background."""
        log = self._layout.log / f"{argv[0]}.out"
        with log.open("ab") as out:
            done = subprocess.run(
                argv, env=self._environment, cwd=self._layout.root, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, timeout=60, check=False,
            )  # fmt: skip
        if done.returncode:
            raise RigError(f"{argv[0]} did not start ({done.returncode}): {self._log_of(argv[0])}")

    def _spawn(self, *argv: str) -> None:
        """Start a program that stays in the foreground; it writes its own pid file."""
        with (self._layout.log / f"{argv[0]}.out").open("ab") as out:
            child = subprocess.Popen(
                argv, env=self._environment, cwd=self._layout.root, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)

    def _try(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=TRY_S, check=False
        )

    def _wait(self, part: str, command: list[str], patience_s: float) -> None:
        processes.require(
            lambda: self._answers(command),
            patience_s,
            lambda: f"{part} does not answer: {self._log_of(part)}",
        )

    def _answers(self, command: list[str]) -> bool:
        try:
            return self._try(command).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _log_of(self, part: str) -> str:
        return last_lines(self._layout.log / f"{part}.log") or last_lines(self._layout.log / f"{part}.out")
