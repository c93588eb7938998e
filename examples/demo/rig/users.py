"""The unprivileged users of the rig, under names that no site uses; they stay after the rig has gone."""

import pwd
import subprocess

from .errors import RigError

ALICE = "evsalice"
BOB = "evsbob"
DAEMON = "evsdaemon"
LOWEST_UID = 1000


def ensure_users(names: tuple[str, ...] = (ALICE, BOB, DAEMON)) -> None:
    """Create the users that do not exist yet: no home, no login shell, no password."""
    for name in names:
        if not _exists(name):
            _create(name)
        elif pwd.getpwnam(name).pw_uid < LOWEST_UID:
            raise RigError(f"user {name} exists with a uid below {LOWEST_UID}: it is not the rig's")


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _create(name: str) -> None:
    command = [
        "useradd",
        "-K",
        f"UID_MIN={LOWEST_UID}",
        "-U",
        "-M",
        "-d",
        "/nonexistent",
        "-s",
        "/usr/sbin/nologin",
        name,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    # Another rig may have created it in between.
    if done.returncode and not _exists(name):
        raise RigError(f"user {name} cannot be created: {done.stderr.strip()}")
