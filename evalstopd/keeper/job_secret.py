"""Hands a Slurm job its secret: run by the root Prolog as `python3 -I -S job_secret.py KEY_FILE DIRECTORY`.

Writes DIRECTORY/<job id>/secret, readable by the job's owner alone. Uses what slurmd tells (job id, uid, restarts,
cluster) and the site key; asks Slurm nothing, because a Prolog that does costs the controller a call for each node.
The key never appears among a process's arguments, where any user could read it.
`evalstopd/core/mac.py` says what the secret is for and derives it in the same way.
"""

import hashlib
import hmac
import os
import re
import stat
import sys
import time
from collections.abc import Mapping

_FIELDS = {
    "SLURM_CLUSTER_NAME": r"[A-Za-z0-9_.-]{1,64}",
    "SLURM_JOB_ID": r"[0-9]{1,10}",
    "SLURM_JOB_UID": r"[0-9]{1,10}",
    "SLURM_JOB_RESTART_COUNT": r"[0-9]{1,9}",
}
_SHORTEST_KEY = 32
_PURPOSE = "evalstop-job-1"


def main() -> None:
    """Issue one secret; what is wrong is one line on stderr (slurmd's log) and the exit code 1."""
    try:
        key_file, directory = sys.argv[1:]
        issue(read_key(key_file), directory, os.environ, int(time.time()))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"evalstopd: no job secret: {error}\n")
        sys.exit(1)


def read_key(path: str) -> bytes:
    """Return the site key. Raises ValueError where others than its owner can read it, or it is too short."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise ValueError(f"{path} must be a file that only its owner can read")
        key = file.read(4096).strip()
    if len(key) < _SHORTEST_KEY:
        raise ValueError(f"{path} must hold at least {_SHORTEST_KEY} bytes")
    return key


def issue(key: bytes, directory: str, environment: Mapping[str, str], now_s: int) -> None:
    """Write the secret of the job that the environment names; a second call for the job replaces the first's."""
    cluster, job_id, uid, restarts = (_field(environment, name, form) for name, form in _FIELDS.items())
    folder = os.path.join(directory, job_id)
    for path in (directory, folder):
        os.makedirs(path, mode=0o755, exist_ok=True)
        _only_ours(path)
    words = "|".join((_PURPOSE, cluster, job_id, uid, restarts, str(now_s)))
    secret = hmac.new(key, words.encode(), hashlib.sha256).hexdigest()
    _write(folder, f"{now_s}.{secret}\n", int(uid))


def _field(environment: Mapping[str, str], name: str, form: str) -> str:
    value = environment.get(name, "")
    if not re.fullmatch(form, value, re.ASCII):
        raise ValueError(f"{name} is missing or not what slurmd gives")
    # As the daemon has them: a number without leading zeros, a cluster's name in small letters as accounting keeps it.
    return value.lower() if name == "SLURM_CLUSTER_NAME" else str(int(value))


def _only_ours(path: str) -> None:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise ValueError(f"{path} must be a folder that only its owner, this account, can write")


def _write(folder: str, text: str, uid: int) -> None:
    # The Prologs of several nodes may run on one machine at once: each writes a file of its own, the last rename wins.
    new = os.path.join(folder, f".secret-{os.getpid()}")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400)
    try:
        os.fchown(file, uid, -1)
        os.write(file, text.encode())
    finally:
        os.close(file)
    os.rename(new, os.path.join(folder, "secret"))


if __name__ == "__main__":
    main()
