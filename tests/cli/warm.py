"""The command line from a process that has loaded it once: each call is a fork, which spares it the loading.

`python -m tests.cli.warm` is that process: a call a line on standard input, its outcome a line on standard output.
"""

import atexit
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from evalstopd.cli import main

# What `main` itself loads only when a command needs it.
LOADED = (
    "evalstopd.wiring.service", "evalstopd.wiring.checks.every", "evalstopd.wiring.undo", "evalstopd.wiring.priorities",
    "evalstopd.report.audit.page", "evalstopd.report.audit.sheet", "evalstopd.report.render", "rich.table",
)  # fmt: skip


class Commands:
    """Calls of `evalstopd` as `subprocess.run` would make them: own environment, no input, output as text."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"arguments": list(arguments), "environment": dict(environment), "folder": os.getcwd()}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(list(arguments), told["code"], told["out"], told["err"])


@contextmanager
def commands() -> Iterator[Commands]:
    """Start the process, and end it."""
    command = [sys.executable, "-m", "tests.cli.warm"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Commands(process)
        assert process.stdin is not None
        process.stdin.close()


def serve() -> None:
    """Answer calls until the input ends."""
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            asked = json.loads(line)
            child = os.fork()
            if not child:
                _become(asked, out, err)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            told = {"code": code, "out": _text(out), "err": _text(err)}
        print(json.dumps(told), flush=True)


def _become(asked: dict[str, Any], out: BinaryIO, err: BinaryIO) -> None:
    """Be the command, as an interpreter just started would be; never return."""
    code = 1
    try:
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace")
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        sys.argv = ["evalstopd", *asked["arguments"]]
        code = _main()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _main() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  an interpreter prints it, too
        traceback.print_exc()
        return 1
    return 0


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    serve()
