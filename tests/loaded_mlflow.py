"""The process that has loaded MLflow: a command a line on standard input, the id of what began on standard output.

A fork runs `mlflow server` itself, with its options and environment; where that would start an interpreter for its
web server, another fork takes its place. Run by its path: what lies beside the tests must not be found by MLflow.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

# The first one tells MLflow, when that is loaded, that it is a server.
LOADED = ("uvicorn", "mlflow.cli", "mlflow.server.fastapi_app", "mlflow.store.tracking.sqlalchemy_store")


def serve() -> None:
    """Begin commands until the input ends."""
    for name in LOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would have one thread alone"
    gc.collect()
    gc.freeze()
    # Nobody waits here for what was begun.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if not os.fork():
            _become(json.loads(line))


def _become(asked: dict[str, Any]) -> None:
    """Be the command, as an interpreter just started would be; never return."""
    os.setsid()
    # Only now is it found by its session.
    print(os.getpid(), flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _open(os.devnull, os.O_RDONLY, 0)
    _open(asked["log"], os.O_WRONLY | os.O_APPEND, 1, 2)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    stand_in = StandIn()
    importlib.import_module("mlflow.server")._exec_cmd = stand_in.execute  # type: ignore[attr-defined]
    run(asked["command"])


def _open(path: str, flags: int, *targets: int) -> None:
    opened = os.open(path, flags)
    for target in targets:
        os.dup2(opened, target)
    os.close(opened)


class StandIn:
    """The interpreter that `mlflow server` will start for its web server, forked before anything is connected."""

    def __init__(self) -> None:
        asked, asking = os.pipe()
        self.pid = os.fork()
        os.close(asking if not self.pid else asked)
        if not self.pid:
            self._stand_by(asked)
        self._asking = asking

    def _stand_by(self, asked: int) -> None:
        with os.fdopen(asked) as said:
            told = said.read()
        if told:
            command, environment = json.loads(told)
            os.environ.update(environment)
            run(command)
        os._exit(0)

    def execute(self, command: Sequence[str], *, extra_env: Mapping[str, str], **_: object) -> "StandIn":
        """Let it be the command."""
        with os.fdopen(self._asking, "w") as asking:
            json.dump([list(command), dict(extra_env)], asking)
        return self

    def poll(self) -> int | None:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def run(command: Sequence[str]) -> None:
    """Run `PYTHON -m MODULE WORDS` in this process; never return."""
    assert list(command[:2]) == [sys.executable, "-m"], command
    code = 1
    try:
        sys.argv = list(command[2:])
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
