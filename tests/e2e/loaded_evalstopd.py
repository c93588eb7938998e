"""The process that has loaded evalstopd: each request on its socket becomes a fork that is `evalstopd ARGUMENTS`.

Run by its path, as root. With a request come three descriptors: standard output, standard error, and one that is told
the fork's id on a line and, once it has ended, its exit code on another (negative for a signal's number).
"""

import ctypes
import gc
import importlib
import io
import json
import os
import pwd
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any

from evalstopd.cli import main

# What `main` itself loads only when a command needs it.
LOADED = (
    "evalstopd.wiring.service", "evalstopd.wiring.checks.every", "evalstopd.wiring.undo", "evalstopd.wiring.priorities",
    "evalstopd.wiring.pulses", "evalstopd.daemon", "evalstopd.log", "evalstopd.veto", "evalstopd.breakers",
    "evalstopd.report.rows", "evalstopd.report.render", "evalstopd.report.audit.page", "evalstopd.report.audit.sheet",
    "rich.table",
)  # fmt: skip
LONGEST = 65_536
PR_SET_NO_NEW_PRIVS = 38


def serve(requests: socket.socket) -> bool:
    """Fork for each request. Return in a fork that is to run the command, with True, and when nobody asks any more."""
    for name in LOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would have one thread alone"
    gc.collect()
    gc.freeze()
    # Each command has a parent of its own, for which nobody waits.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        said, descriptors, _, _ = socket.recv_fds(requests, LONGEST, 3)
        if not said:
            return False
        if not os.fork():
            requests.close()
            _attend(*descriptors)
            _become(json.loads(said), descriptors)
            return True
        for each in descriptors:
            os.close(each)


def _attend(out: int, err: int, told: int) -> None:
    """Fork: return in the command's process, and tell in its parent how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        os.setsid()
        os.write(told, b"%d\n" % os.getpid())
        return
    for each in (out, err):
        os.close(each)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(told, b"%d\n" % code)
    os._exit(0)


def _become(asked: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Be under the command's account, with what it has been given, as an interpreter just started would be."""
    out, err, told = descriptors
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((nothing, out, err)):
        os.dup2(source, target)
    for each in (nothing, out, err, told):
        os.close(each)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    _be_account(asked["user"], daemon=asked["daemon"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv = ["evalstopd", *asked["arguments"]]


def _be_account(name: str, *, daemon: bool) -> None:
    """Change the account as `setpriv --clear-groups --no-new-privs` does for the daemon, and `runuser` for others."""
    account = pwd.getpwnam(name)
    if daemon:
        os.setgroups([])
        assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    else:
        os.initgroups(name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


if __name__ == "__main__" and serve(socket.socket(fileno=int(sys.argv[1]))):
    main()
