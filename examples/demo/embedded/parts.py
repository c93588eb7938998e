"""The processes beside the daemon's loop: the keeper and the trainer, each under the account that it needs."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.rig import processes
from demo.rig.errors import RigError, last_lines
from demo.service import SYSTEM_PYTHON
from evalstopd.keeper import keeper as keeper_module

START_S = 30.0
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose jobs the demo's are: oneself, or, for root, an account that owns nothing."""

    uid: int
    gid: int
    name: str

    @property
    def switch(self) -> dict[str, Any]:
        """Return what makes a child process the owner's."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if os.getuid() == 0 else {}


def owner() -> Owner:
    """Return the owner; raises RigError where root finds no account to use."""
    uid = os.getuid()
    try:
        account = pwd.getpwnam(NOBODY) if uid == 0 else pwd.getpwuid(uid)
    except KeyError:
        if uid:
            return Owner(uid, os.getgid(), str(uid))
        raise RigError(f"there is no account {NOBODY}: run the demo as a user other than root") from None
    return Owner(account.pw_uid, account.pw_gid, account.pw_name)


@contextmanager
def keeper(directory: Path, environment: dict[str, str]) -> Iterator[Path]:
    """Run the keeper and give its socket: as root the real one, else the one for one's own files."""
    socket, log = directory / "keeper.sock", directory / "keeper.log"
    own = [sys.executable, "-m", "demo.embedded.keeper_here", "--min-uid", "1"]
    real = [SYSTEM_PYTHON, "-I", "-S", str(Path(keeper_module.__file__)), "--min-uid", "1000"]
    allow = ["--socket", str(socket), "--allow-uid", str(os.getuid()), "--allow-gid", str(os.getgid())]
    with log.open("ab") as out, _running([*(real if os.getuid() == 0 else own), *allow], environment, stderr=out):
        processes.require(socket.exists, START_S, lambda: f"the keeper does not start: {last_lines(log)}")
        yield socket


@dataclass(frozen=True, slots=True)
class TrainerProcess:
    """The trainer behind its pipes."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def do(self, orders: Sequence[dict[str, Any]]) -> list[str]:
        """Have orders carried out; return the run of each. Raises RigError where the trainer has failed."""
        if not orders:
            return []
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(list(orders)).encode() + b"\n")
            stdin.flush()
            return list(json.loads(stdout.readline()))
        except (OSError, ValueError):
            raise RigError(f"the training jobs have failed: {last_lines(self.log)}") from None


@contextmanager
def trainer(directory: Path, who: Owner, uri: str, environment: dict[str, str]) -> Iterator[TrainerProcess]:
    """Run the trainer as the jobs' owner, in a work folder of the owner's."""
    work, log = directory / "work", directory / "trainer.log"
    work.mkdir()
    if os.getuid() == 0:
        os.chown(work, who.uid, who.gid)
    command = [sys.executable, "-m", "demo.embedded.trainer", uri, str(work)]
    with ExitStack() as stack:
        out = stack.enter_context(log.open("ab"))
        piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": out, **who.switch}
        yield TrainerProcess(stack.enter_context(_running(command, environment, **piped)), log)


@contextmanager
def _running(command: list[str], environment: dict[str, str], **options: Any) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a process of ours and end it."""
    given = {"stdin": subprocess.DEVNULL, **options}
    with subprocess.Popen(command, env=environment, start_new_session=True, **given) as process:
        try:
            yield process
        finally:
            processes.end([process.pid])
