"""The one way a Slurm command is run: argument list, clean environment, own time limit, capped output."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Protocol

from evalstopd.errors import Unavailable

PROGRAMS = "/usr/bin:/usr/sbin:/bin:/sbin"
# 10,000 jobs (MaxJobCount's default) whose owners fill comment, name and path come to about 60 MB.
OUTPUT_CAP = 128 * 2**20
TIME_LIMIT_S = 5.0
_CHUNK = 2**16
_LINE = 300
_REAP_S = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command left behind: exit code, output, complaints. Bytes that are not UTF-8 are surrogates."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Return what the command complained of, as one printable line."""
        return printable(self.err) or printable(self.out) or "no message"


# At most so much is handed to a command: a pipe takes it at once, whether the command reads or not.
INPUT_CAP = 2**15


class Runner(Protocol):
    """Runs one command."""

    def __call__(self, argv: Sequence[str], env: Mapping[str, str], /, feed: str = "") -> Answer:
        """Take the argument list, variables to add to the environment, and what the command reads.

        Raises Unavailable where there is no whole answer.
        """


@dataclass(frozen=True, slots=True)
class ProcessRunner:
    """Runs commands as processes. `conf` is the path of slurm.conf, None for Slurm's own default.

    Raises Unavailable for a missing program, an answer after `timeout_s` seconds, and output over `cap` bytes.
    """

    conf: str | None = None
    timeout_s: float = TIME_LIMIT_S
    path: str = PROGRAMS
    cap: int = OUTPUT_CAP

    def __call__(self, argv: Sequence[str], env: Mapping[str, str], /, feed: str = "") -> Answer:
        """Run one command to its end; its whole process group is killed where it does not end in time."""
        deadline = time.monotonic() + self.timeout_s
        process = self._start(argv, env)
        try:
            _feed(process, feed)
            out, err = self._read(process, deadline)
            if len(out) + len(err) > self.cap:
                raise Unavailable(f"{argv[0]} printed more than {self.cap} bytes")
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{argv[0]} gave no answer within {self.timeout_s:g} s") from None
        finally:
            _end(process)
        return Answer(code, _text(out), _text(err))

    def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                argv,
                env=self._environment(env),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise Unavailable(f"{argv[0]} was not found at {self.path} (slurm.path)") from None
        except OSError as error:
            raise Unavailable(f"{argv[0]} cannot be run: {error.strerror or 'unknown error'}") from error

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        # Epochs in UTC: neither the machine's time zone nor a change of its clock may shift a submit time.
        fixed = {"PATH": self.path, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        conf = {"SLURM_CONF": self.conf} if self.conf else {}
        return fixed | conf | dict(extra)

    def _read(self, process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
        out, err = bytearray(), bytearray()
        with selectors.DefaultSelector() as selector:
            for stream, buffer in zip(_streams(process), (out, err), strict=True):
                selector.register(stream, selectors.EVENT_READ, buffer)
            while selector.get_map() and len(out) + len(err) <= self.cap:
                self._take(selector, process, deadline)
        return bytes(out), bytes(err)

    def _take(self, selector: selectors.BaseSelector, process: subprocess.Popen[bytes], deadline: float) -> None:
        left = deadline - time.monotonic()
        ready = selector.select(left) if left > 0 else []
        if not ready:
            raise subprocess.TimeoutExpired(process.args, self.timeout_s)
        for key, _ in ready:
            chunk = os.read(key.fd, _CHUNK)
            key.data.extend(chunk)
            if not chunk:
                selector.unregister(key.fileobj)


def succeed(answer: Answer, what: str) -> str:
    """Return the output of a command that ended well; raises Unavailable with its complaint else."""
    if answer.code != 0:
        raise Unavailable(f"{what} failed ({answer.code}): {answer.complaint}")
    return answer.out


def printable(text: str, limit: int = _LINE) -> str:
    """Return any text as one printable line of at most `limit` characters."""
    line = " ".join(text[: 4 * limit].split())
    return "".join(char if char.isprintable() else "?" for char in line)[:limit]


def _feed(process: subprocess.Popen[bytes], text: str) -> None:
    """Hand a command all that it may read, and the end of it."""
    data = text.encode()
    if len(data) > INPUT_CAP:
        raise ValueError(f"{len(data)} bytes are more than a command is handed")
    if process.stdin is not None:
        # A command that does not read has ended, or will: its answer tells.
        with suppress(BrokenPipeError):
            process.stdin.write(data)
            process.stdin.flush()
        with suppress(BrokenPipeError):
            process.stdin.close()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # A process in an uninterruptible wait is left to the kernel: the daemon goes on.
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)
    for stream in _streams(process):
        stream.close()


def _streams(process: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [stream for stream in (process.stdout, process.stderr) if stream is not None]
