"""MLflow servers that begin as forks of a process that has loaded MLflow: a fraction of the processor's time."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from demo.rig import processes
from demo.rig.mlflow_server import MlflowServer

LOADED = Path(__file__).with_name("loaded_mlflow.py")
POLL_S = 0.02


class Begun:
    """What the warm process began: as much of `subprocess.Popen` as a server needs."""

    def __init__(self, pid: int, mark: Path) -> None:
        self.pid = pid
        self._mark = mark

    def all(self) -> list[int]:
        """Return the running processes of its session. A fork's environment is told as that of who forked it."""
        return [pid for pid in processes.all_marked(self._mark) if processes.session(pid) == self.pid]

    def poll(self) -> int | None:
        """Return None while it runs; how it ended is not known."""
        return None if self.pid in self.all() else 0

    def wait(self, timeout: float) -> int:
        if not processes.wait_until(lambda: self.poll() is not None, timeout, POLL_S):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return 0


class WarmMlflow:
    """Begins `python -m mlflow ...` in sessions of their own."""

    def __init__(self, process: subprocess.Popen[str], mark: Path) -> None:
        self._process = process
        self._mark = mark

    def begin(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> Begun:
        """Begin a command in a folder; its output goes to the end of a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"command": list(command), "environment": dict(environment), "folder": str(folder), "log": str(log)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Begun(int(self._process.stdout.readline()), self._mark)


class Warm(MlflowServer):
    """A server of this Python that begins as a fork."""

    def __init__(self, warm: WarmMlflow, directory: Path, *, password: str = "") -> None:
        super().__init__(sys.executable, directory, password=password)
        self._warm = warm

    def _begin(self) -> Begun:
        self.log.touch()
        return self._warm.begin(self._command(), self._environment(), self._directory, self.log)

    def _all(self) -> list[int]:
        return self._process.all() if isinstance(self._process, Begun) else []


@contextmanager
def warm_mlflow() -> Iterator[WarmMlflow]:
    """Start the process that has loaded MLflow, and end it."""
    mark = Path("/", secrets.token_hex())
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    with subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", str(LOADED)], env=environment | processes.marked(mark),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield WarmMlflow(process, mark)
        assert process.stdin is not None
        process.stdin.close()
