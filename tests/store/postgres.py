"""A private PostgreSQL cluster for tests: an unprivileged user, a temporary directory, a unix socket, no network."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_START_S = 60
# Nothing here outlives a power cut, so nothing waits for the disk.
_SETTINGS = (
    "listen_addresses=''",
    "fsync=off",
    "full_page_writes=off",
    "checkpoint_flush_after=0",
    "wal_level=minimal",
    "max_wal_senders=0",
    "shared_buffers=16MB",
    "max_connections=20",
)


class NotHere(Exception):
    """PostgreSQL cannot be run here; the message says why."""


@contextmanager
def server() -> Iterator[str]:
    """Yield the folder of the socket of a running server. Raises NotHere where there is none to run."""
    programs = _programs()
    # A socket's path may have 107 bytes: pytest's own folders are too deep.
    home = Path(tempfile.mkdtemp(prefix="evalstopd-pg-", dir="/tmp"))
    try:
        as_user = _unprivileged(home)
        data = home / "data"
        made = [programs / "initdb", "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=home, timeout=_START_S, **as_user)
        with _running([programs / "pg_ctl", "-D", data, "-l", home / "log", "-w"], home, as_user):
            yield str(home)
    finally:
        shutil.rmtree(home)


def other_database(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    return url.replace("/postgres?", f"/{name}?")


@contextmanager
def hanging(home: str) -> Iterator[None]:
    """Let every process of the server with its socket there do nothing for a while; none is ended."""
    server = int((Path(home) / "data" / "postmaster.pid").read_text().split()[0])
    # The one that makes the others comes first: then no more are made.
    os.kill(server, signal.SIGSTOP)
    pids = [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in (*pids, server):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _running(control: list[Any], home: Path, as_user: dict[str, Any]) -> Iterator[None]:
    options = " ".join([f"-k {home}", *(f"-c {each}" for each in _SETTINGS)])
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": home, "timeout": _START_S, **as_user}
    subprocess.run([*control, "-o", options, "start"], check=True, **quiet)
    try:
        yield
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet)


def _programs() -> Path:
    try:
        __import__("psycopg")
    except ImportError as error:
        raise NotHere(f"the driver is not installed: {error} (evalstopd[postgresql] has it)") from error
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise NotHere("no /usr/lib/postgresql/*/bin/initdb: the package postgresql is not installed")
    return found[-1].parent


def _unprivileged(home: Path) -> dict[str, Any]:
    """Return the arguments that drop root, whom PostgreSQL refuses to run as."""
    if os.geteuid() != 0:
        return {}
    with suppress(KeyError):
        user = pwd.getpwnam("nobody")
        user = pwd.getpwnam("postgres")
    os.chown(home, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
