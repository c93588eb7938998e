"""A systemd that runs, on a copy of this machine's files that is thrown away: where the units are tried in earnest."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BOOT = Path(__file__).with_name("boot.sh")
COMMAND_S = 120.0
START_S = 60.0
NAMESPACES = ("--pid", "--mount", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child")
# The machine's cgroups, seen in a mount of our own: what the box left there is removed, the deepest first.
_SWEEP = """mount -t cgroup2 cgroup2 "$1"
for _ in $(seq 100); do
  find "$1/$2" -depth -type d -exec rmdir {} + 2>/dev/null
  [ -e "$1/$2" ] || break
  sleep .1
done"""
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class NoBoxError(Exception):
    """No systemd can be booted here, and why."""


@dataclass(frozen=True)
class Box:
    """A booted systemd; `init` is its process 1 as this machine numbers it."""

    init: int

    def run(self, script: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """Run a shell script inside, as one of its users; the exit code is the caller's."""
        enter = ["nsenter", "--target", str(self.init), "--pid", "--mount", "--ipc", "--uts", "--cgroup"]
        account = [] if user == "root" else ["runuser", "-u", user, "--"]
        return subprocess.run(
            [*enter, *account, "bash", "-euc", f"cd /\n{script}"], env=_ENVIRONMENT, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=COMMAND_S, check=False,
        )  # fmt: skip

    def done(self, script: str, user: str = "root") -> str:
        """Run a script that must end well, and return what it printed."""
        ran = self.run(script, user)
        assert ran.returncode == 0, f"{script}\n{ran.stdout}\n{ran.stderr}\n{self.log()}"
        return ran.stdout

    def log(self, *fields: str, lines: int = 40) -> str:
        """Return the newest lines of the journal, of the records with these fields if there are any."""
        return self.run(f"journalctl --no-pager -n {lines} {' '.join(fields)}").stdout

    def wait(self, holds: Callable[[], object], what: str, within_s: float = 120.0) -> None:
        """Wait until something holds; fail with what it was, and the journal's newest lines."""
        end = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < end, f"not within {within_s:g} s: {what}\n{self.log(lines=80)}"
            time.sleep(0.3)


@contextmanager
def booted(shared: Mapping[Path, str]) -> Iterator[Box]:
    """Boot a box that sees these folders of the machine under these names. Raises NoBoxError where that cannot be."""
    if os.geteuid() != 0 or not Path("/lib/systemd/systemd").exists():
        raise NoBoxError("that needs root, and Debian's package systemd")
    with tempfile.TemporaryDirectory(prefix="evsbox-", dir="/var/tmp") as name:
        said = Path(name) / "boot.log"
        pairs = [f"{folder}:{seen}" for folder, seen in shared.items()]
        with said.open("wb") as out:
            process = subprocess.Popen(
                ["unshare", *NAMESPACES, str(BOOT), f"{name}/box", *pairs],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        try:
            yield Box(_up(process, said))
        finally:
            process.kill()
            process.wait()
            _swept(Path(name))


def _up(process: subprocess.Popen[bytes], said: Path) -> int:
    """Wait until systemd is up; return its process."""
    end = time.monotonic() + START_S
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < end:
        if process.poll() is not None:
            raise NoBoxError(said.read_text(errors="replace")[-500:])
        first = children.read_text().split()
        if first and Box(int(first[0])).run("systemctl is-system-running").stdout.strip() in ("running", "degraded"):
            return int(first[0])
        time.sleep(0.2)
    raise NoBoxError(f"systemd is not up after {START_S:g} s: {said.read_text(errors='replace')[-500:]}")


def _swept(folder: Path) -> None:
    mount = folder / "cgroup"
    mount.mkdir()
    command = ["unshare", "--mount", "sh", "-c", _SWEEP, "sweep", str(mount), folder.name]
    subprocess.run(command, capture_output=True, timeout=COMMAND_S, check=False)
