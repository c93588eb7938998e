"""A site's own program as a way to reach people: argument list, no shell, the message as JSON on its input."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from evalstopd.adapters.notify.text import harmless
from evalstopd.errors import InDoubt, Unavailable
from evalstopd.ports import Message

_PATH = "/usr/bin:/usr/sbin:/bin:/sbin"
_CHUNK = 2**16
_KEPT = 2**12
_SHOWN = 300
_REAP_S = 1.0


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """Runs `argv` once a message and holds it to `limit_s` seconds.

    Exit code 0 means that the message was sent, any other that it was not; of a program that was killed nobody knows.

    The program gets one JSON object on standard input: `kind`, `ref`, `key` (cluster, job_id, uid, submitted_s),
    `user`, `subject`, `text`; what is for the site's admin has an empty `user` and `job_id`. Its whole process group
    is killed at the limit. Of what it prints the first 4 KiB are kept, for the log.
    """

    argv: tuple[str, ...]
    limit_s: float = 10.0

    def send(self, message: Message) -> str:
        """Run the program on one message. Raises Unavailable where it failed by its own word, InDoubt where killed."""
        code, printed = self._run(json.dumps(asdict(message)).encode("ascii"))
        said = harmless(printed.decode("utf-8", "backslashreplace").strip(), _SHOWN)
        if code < 0:
            raise InDoubt(f"{self.argv[0]} was killed by signal {-code}: {said or 'no message'}")
        if code != 0:
            raise Unavailable(f"{self.argv[0]} ended with {code}: {said or 'no message'}")
        return f"{self.argv[0]} ended with 0" + (f": {said}" if said else "")

    def check(self) -> str:
        """Tell whether the program is there. It is not run: that would send something."""
        path = Path(self.argv[0])
        if not path.is_file() or not os.access(path, os.X_OK):
            raise Unavailable(f"{path} is no program that this account may run")
        return f"{path} can be run"

    def _run(self, given: bytes) -> tuple[int, bytes]:
        end_s = time.monotonic() + self.limit_s
        with self._spooled(given) as stdin:
            process = self._start(stdin)
            try:
                printed = _printed(process, end_s)
                return process.wait(max(0.0, end_s - time.monotonic())), printed
            except subprocess.TimeoutExpired:
                raise InDoubt(f"{self.argv[0]} did not end within {self.limit_s:g} s and was killed") from None
            finally:
                _end(process)

    def _spooled(self, given: bytes) -> IO[bytes]:
        try:
            with ExitStack() as undo:
                file = undo.enter_context(tempfile.TemporaryFile())
                file.write(given)
                file.seek(0)
                undo.pop_all()
                return file
        except OSError as error:
            raise Unavailable(f"no message could be written for {self.argv[0]}: {error}") from error

    def _start(self, stdin: IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.argv,
                env={"PATH": _PATH, "LC_ALL": "C.UTF-8"},
                cwd="/",
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self.argv[0]} cannot be run: {error}") from error


def _printed(process: subprocess.Popen[bytes], end_s: float) -> bytes:
    """Return the first of what a program prints; all of it is read, so that no full pipe holds it up."""
    kept = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(_output(process), selectors.EVENT_READ)
        while True:
            left_s = end_s - time.monotonic()
            if left_s <= 0 or not selector.select(left_s):
                raise subprocess.TimeoutExpired(process.args, 0)
            chunk = os.read(_output(process).fileno(), _CHUNK)
            if not chunk:
                return bytes(kept)
            kept += chunk[: _KEPT - len(kept)]


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise Unavailable("the program has no output")
    return process.stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group of a program that was not seen to end; only until then the number is surely its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)
    _output(process).close()
