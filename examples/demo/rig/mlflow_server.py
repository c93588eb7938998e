"""A real MLflow tracking server on SQLite, as its own process group on a port of its own."""

import os
import secrets
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from . import processes
from .errors import RigError, last_lines
from .ports import free_block

START_S = 240.0
TRY_S = 2.0
AUTH = """\
[mlflow]
default_permission = READ
database_uri = sqlite:///{database}
admin_username = admin
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = 600
"""
"""Without the last line each request would work for a tenth of a second to compare a password."""


class Process(Protocol):
    """A server's first process, the leader of its session and of its group."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...


class MlflowServer:
    """`mlflow server` of the given Python, keeping its data below `directory`; the port survives restarts.

    Linux only. `start` ends a server that a crashed owner left in the same directory. With a `password` it has
    MLflow's basic-auth: `admin` and that password, and nobody without a login.
    """

    def __init__(self, python: str, directory: Path, port: int | None = None, *, password: str = "") -> None:
        self._python = python
        self._password = password
        self._directory = directory.resolve()
        # A cluster may share the directory, so the mark is the database's path.
        self._mark = self._directory / "mlflow.db"
        self._port = port or free_block(1)
        self._process: Process | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def database(self) -> Path:
        """The SQLite file that the server keeps its runs in."""
        return self._mark

    @property
    def log(self) -> Path:
        return self._directory / "server.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it answers. Raises RigError; then nothing is left over."""
        self._directory.mkdir(parents=True, exist_ok=True)
        processes.end(self._all())
        self._process = self._begin()
        try:
            self._wait_healthy()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the server with its workers; a paused one too, and one left by a crashed owner."""
        self._signal(signal.SIGCONT)
        processes.end(self._all())
        self._reap()

    def kill(self) -> None:
        """Take the server away at once, workers too; `start` brings it back with its data, on the same port."""
        killed = self._all()
        for pid in killed:
            processes.send(pid, signal.SIGKILL)
        self._reap()
        # A worker that is still dying accepts connections, and resets them.
        processes.require(lambda: not any(map(processes.is_running, killed)), processes.END_S, lambda: "MLflow stays")

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Let the server hang: connections open and no answer comes."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _begin(self) -> Process:
        with self.log.open("ab") as out:
            return subprocess.Popen(
                self._command(), env=self._environment(), cwd=self._directory, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def _all(self) -> list[int]:
        return processes.all_marked(self._mark)

    def _signal(self, number: signal.Signals) -> None:
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def _reap(self) -> None:
        if self._process:
            self._process.wait(timeout=processes.END_S)

    def _wait_healthy(self) -> None:
        processes.require(self._up_or_dead, START_S, lambda: f"MLflow does not answer: {last_lines(self.log)}")
        if not self._healthy():
            raise RigError(f"MLflow ended at its start: {last_lines(self.log)}")

    def _up_or_dead(self) -> bool:
        return self._healthy() or self._process is None or self._process.poll() is not None

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=TRY_S) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _command(self) -> list[str]:
        return [
            self._python,
            "-m",
            "mlflow",
            "server",
            "--backend-store-uri",
            f"sqlite:///{self._mark}",
            "--default-artifact-root",
            str(self._directory / "artifacts"),
            "--host",
            "127.0.0.1",
            "--port",
            str(self._port),
            "--workers",
            "1",
            *(["--app-name", "basic-auth"] if self._password else []),
        ]

    def _environment(self) -> dict[str, str]:
        """Keep the caller's environment, without what would make another server of this one."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        # Without the job runners: two processes instead of ten, a quarter of the memory.
        own = {**kept, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **processes.marked(self._mark)}
        return own if not self._password else {**own, **self._auth()}

    def _auth(self) -> dict[str, str]:
        config = self._directory / "auth.ini"
        config.write_text(AUTH.format(database=self._directory / "auth.db"))
        return {
            "MLFLOW_AUTH_CONFIG_PATH": str(config),
            "MLFLOW_AUTH_ADMIN_PASSWORD": self._password,
            "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(16),
        }
