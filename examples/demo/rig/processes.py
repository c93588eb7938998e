"""Start, find and end processes by id: never by name, and never one that is not ours.

Every daemon of a rig is started with `EVSRIG_MARK=<directory>` in its environment. A pid file may outlive
its process and the number be given to a stranger: the mark, read from /proc, tells.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .errors import RigError

MARK = "EVSRIG_MARK"
POLL_S = 0.05
END_S = 10.0


def marked(directory: Path) -> dict[str, str]:
    """Return the environment entry that makes a process recognisable as this directory's."""
    return {MARK: str(directory)}


def is_running(pid: int) -> bool:
    """Tell whether the process exists and is more than a zombie.

    Nor is one whose first thread is dead and whose others die: until the last one has, its connections stand.
    """
    place = Path(f"/proc/{pid}")
    try:
        state = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        return state != "Z" or len(list((place / "task").iterdir())) > 1
    except OSError:
        return False


def session(pid: int) -> int | None:
    """Return the id of the session that a process belongs to; None where there is no such process."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def is_ours(pid: int, directory: Path) -> bool:
    """Tell whether a running process carries this directory's mark."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={directory}".encode() in environment.split(b"\0")


def from_file(pid_file: Path, directory: Path) -> int | None:
    """Return the id in a pid file if that process runs and is ours."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if is_running(pid) and is_ours(pid, directory) else None


def all_marked(directory: Path) -> list[int]:
    """Return every running process that carries this directory's mark."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [pid for pid in pids if is_ours(pid, directory) and is_running(pid)]


def descendants(pid: int) -> Iterator[int]:
    """Yield the children of a process and theirs, as long as their parents live."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal; a process that has gone already is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def end(pids: Iterable[int], patience_s: float = END_S) -> None:
    """End processes gently and all at once; what still runs after `patience_s` is killed."""
    pending = list(pids)
    for pid in pending:
        send(pid, signal.SIGTERM)
    if not wait_until(lambda: not any(map(is_running, pending)), patience_s):
        for pid in filter(is_running, pending):
            send(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], patience_s: float, poll_s: float = POLL_S) -> bool:
    """Wait for a condition; returns whether it came true in time."""
    end_at = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() >= end_at:
            return False
        time.sleep(poll_s)
    return True


def require(condition: Callable[[], bool], patience_s: float, what: Callable[[], str]) -> None:
    """Wait for a condition; raises RigError with `what()` when it does not come true in time."""
    if not wait_until(condition, patience_s):
        raise RigError(what())
