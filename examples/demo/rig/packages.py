"""The Debian packages of a Slurm cluster: which are missing, how they get in without starting services."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import RigError

PROGRAMS = "/usr/sbin:/usr/bin:/sbin:/bin"
# Each package, and the program that tells whether it is there (on other systems than Debian too).
# slurmdbd depends on the MySQL plugin where Debian splits it off, so that needs no name here.
SLURM_PACKAGES = {
    "munge": "munged",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurm-client": "squeue",
    "slurmdbd": "slurmdbd",
    "mariadb-server-core": "mariadb-install-db",
    "mariadb-client-core": "mariadb",
}
POLICY = Path("/usr/sbin/policy-rc.d")
NO_SERVICE = "#!/bin/sh\nexit 101\n"
APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
APT_S = 900


def missing_packages() -> list[str]:
    """Return the packages of a Slurm cluster, by their Debian names, whose programs are not installed."""
    return [name for name, program in SLURM_PACKAGES.items() if not shutil.which(program, path=PROGRAMS)]


def obstacle() -> str | None:
    """Say in one line why no cluster can be brought up on this machine; None where it can."""
    missing = missing_packages()
    if os.geteuid() != 0:
        return "a real Slurm cluster needs root: it runs jobs as other users"
    if missing and not Path("/etc/debian_version").is_file():
        return f"a real Slurm cluster needs Debian, or these installed by hand: {', '.join(missing)}"
    return None


def ensure_packages(say: Callable[[str], None]) -> None:
    """Install what is missing, saying so first. Raises RigError where that cannot be done."""
    reason = obstacle()
    if reason:
        raise RigError(reason)
    with one_at_a_time(POLICY.parent):
        missing = missing_packages()
        if missing:
            say(f"installing by apt-get (no service is started): {', '.join(missing)}")
            with services_stay_down(POLICY):
                _apt("update", "-qq")
                _apt("install", "-y", "-qq", "--no-install-recommends", *missing)


def _apt(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command: Sequence[str] = [*APT, *arguments]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=APT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        last = " | ".join((done.stdout + done.stderr).splitlines()[-3:])
        raise RigError(f"'{' '.join(command)}' failed ({done.returncode}): {last}")


@contextmanager
def one_at_a_time(directory: Path) -> Iterator[None]:
    """Hold a lock on the folder: rigs that start together install once, and put back one policy."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def services_stay_down(policy: Path) -> Iterator[None]:
    """Keep packages from starting services meanwhile; the machine's own policy is put back."""
    before = (policy.read_bytes(), policy.stat().st_mode) if policy.exists() else None
    policy.write_text(NO_SERVICE)
    policy.chmod(0o755)
    try:
        yield
    finally:
        if before is None:
            policy.unlink()
        else:
            policy.write_bytes(before[0])
            policy.chmod(before[1])
