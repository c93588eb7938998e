"""A service whose daemon and commands are forks of a process that has loaded evalstopd: a start costs half a second."""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from demo.rig import users
from demo.rig.cluster import Cluster
from demo.service import COMMAND_S, Process, Service

KEEPER = Path(__file__).parents[2] / "evalstopd" / "keeper" / "keeper.py"
Settings = Mapping[str, Mapping[str, object]]
LOADED = Path(__file__).with_name("loaded_evalstopd.py")


class Begun:
    """A command that was begun: as much of `subprocess.Popen` as a service needs."""

    def __init__(self, told: int, words: Sequence[str]) -> None:
        self._told = told
        self._words = list(words)
        self._said = b""
        while b"\n" not in self._said:
            self._read()
        self.pid = int(self._said.partition(b"\n")[0])

    def poll(self) -> int | None:
        while self._code() is None and select.select([self._told], [], [], 0)[0]:
            self._read()
        return self._code()

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if end is None else end - time.monotonic()
            if not select.select([self._told], [], [], left if left is None else max(left, 0))[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)

    def _read(self) -> None:
        said = os.read(self._told, 100)
        assert said, f"nobody tells how {self._words} ended"
        self._said += said
        if self._code() is not None:
            os.close(self._told)

    def _code(self) -> int | None:
        ended = self._said.partition(b"\n")[2]
        return int(ended) if ended.endswith(b"\n") else None


class Loaded:
    """Begins `evalstopd ARGUMENTS` under an account."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    def begin(
        self, arguments: Sequence[str], user: str, environment: Mapping[str, str], folder: Path, out: int, err: int,
        *, daemon: bool = False,
    ) -> Begun:  # fmt: skip
        asked = {"arguments": list(arguments), "user": user, "environment": dict(environment), "folder": str(folder),
                 "daemon": daemon}  # fmt: skip
        told, telling = os.pipe()
        try:
            socket.send_fds(self._requests, [json.dumps(asked).encode()], [out, err, telling])
        finally:
            os.close(telling)
        return Begun(told, ["evalstopd", *arguments])


class WarmService(Service):
    """The same service, of this Python."""

    def __init__(self, loaded: Loaded, directory: Path, cluster: Cluster, settings: Settings, made: Path) -> None:
        super().__init__(directory, cluster, sys.executable, KEEPER, settings, made)
        self._loaded = loaded

    def _begin(self, program: list[str], environment: Mapping[str, str], out: IO[bytes]) -> Process:
        if program[:3] != [sys.executable, "-m", "evalstopd"]:
            return super()._begin(program, environment, out)
        told = out.fileno()
        return self._loaded.begin(program[3:], users.DAEMON, environment, self.directory, told, told, daemon=True)

    def command(self, *arguments: str, user: str = users.DAEMON) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            begun = self._loaded.begin(arguments, user, self.environment, self.directory, out.fileno(), err.fileno())
            try:
                code = begun.wait(COMMAND_S)
            except subprocess.TimeoutExpired:
                begun.kill()
                raise
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess(list(arguments), code, *said)


@contextmanager
def begin_loading() -> Iterator[Loaded]:
    """Start the process that has loaded evalstopd, and end it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("EVALSTOPD_")}
    with ours:
        with its:
            process = subprocess.Popen(
                [sys.executable, "-P", str(LOADED), str(its.fileno())], env=environment, pass_fds=[its.fileno()]
            )
        yield Loaded(ours)
    process.wait()
