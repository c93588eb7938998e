"""evalstopd as a site runs it: the keeper as root, the daemon under its own account, over real parts."""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from evalstopd.store.sql import SqlStore

from .rig import processes, users
from .rig.cluster import Cluster
from .rig.errors import RigError, last_lines

COMMAND_S = 60.0
START_S = 30.0
END_S = 15.0
SYSTEM_PYTHON = "/usr/bin/python3"


class Book:
    """The daemon's store, read under the daemon's own account.

    Root must not open it: SQLite's side files would be root's for a moment, and the daemon locked out.
    """

    def __init__(self, url: str) -> None:
        self._store = SqlStore(url)
        self._uid = pwd.getpwnam(users.DAEMON).pw_uid

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        def read(*arguments: Any) -> Any:
            os.seteuid(self._uid)
            try:
                return method(*arguments)
            finally:
                os.seteuid(0)

        return read


class Process(Protocol):
    """What a service needs of a process that it began."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


class Service:
    """Keeper and daemon below one directory. `settings` are those of the daemon, as TOML sections.

    `python` must be one that the daemon's account can run, with evalstopd installed; `keeper` is the
    keeper's file, which must belong to root. `made` is a store of this version to copy, where a new one
    would take too long and the settings name no other.
    """

    def __init__(
        self,
        directory: Path,
        cluster: Cluster,
        python: str,
        keeper: Path,
        settings: Mapping[str, Mapping[str, object]],
        made: Path | None = None,
    ) -> None:
        self.directory = directory.resolve()
        self.cluster = cluster
        self._python = python
        self._keeper_file = keeper
        self._settings = settings
        self._made = made
        self._keeper: subprocess.Popen[bytes] | None = None
        self._daemon: Process | None = None

    @property
    def config(self) -> Path:
        return self.directory / "evalstopd.toml"

    @property
    def database(self) -> Path:
        return self.directory / "store" / "evalstopd.db"

    @property
    def url(self) -> str:
        """Return where the store is: the settings' word, else an SQLite file below the directory."""
        return str(self._settings.get("store", {}).get("url", f"sqlite:///{self.database}"))

    @property
    def book(self) -> Book:
        return Book(self.url)

    @property
    def kill_switch(self) -> Path:
        return self.directory / "STOP"

    @property
    def log(self) -> Path:
        return self.directory / "daemon.log"

    @property
    def daemon_pid(self) -> int:
        """Return the id of the daemon's process. Raises RigError where none was started."""
        if self._daemon is None:
            raise RigError("no daemon was started")
        return self._daemon.pid

    @property
    def environment(self) -> dict[str, str]:
        return {**self.cluster.env, **processes.marked(self.directory), "EVALSTOPD_CONFIG": str(self.config)}

    def __enter__(self) -> Self:
        self.prepare()
        self.start_keeper()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def prepare(self) -> None:
        """Write the settings, make the folders and bring the store to this version.

        What an interrupted owner of the same directory left running is ended first.
        """
        processes.end(processes.all_marked(self.directory))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.database.parent.mkdir(exist_ok=True)
        _give(self.database.parent)
        self.configure()
        if self._made and not self.database.exists() and "url" not in self._settings.get("store", {}):
            shutil.copy(self._made, self.database)
            _give(self.database)
        else:
            self._upgrade()

    def _upgrade(self) -> None:
        done = self.command("db", "upgrade")
        if done.returncode:
            raise RigError(f"evalstopd db upgrade: {done.stderr.strip()}")

    def configure(self, **changes: Mapping[str, object]) -> None:
        """Write the settings, some sections changed."""
        own: dict[str, Mapping[str, object]] = {
            "store": {"url": self.url},
            "keeper": {"socket": str(self.directory / "keeper.sock")},
        }
        sections: dict[str, dict[str, object]] = {}
        for each in (own, self._settings, {"daemon": {"kill_switch": str(self.kill_switch)}}, changes):
            for name, values in each.items():
                sections.setdefault(name, {}).update(values)
        text = "\n".join(section(name, values) for name, values in sections.items())
        self.config.write_text(text, encoding="utf-8")

    def start_keeper(self) -> None:
        account = pwd.getpwnam(users.DAEMON)
        path = self.directory / "keeper.sock"
        path.unlink(missing_ok=True)
        command = [
            SYSTEM_PYTHON, "-I", "-S", str(self._keeper_file), "--socket", str(path),
            "--allow-uid", str(account.pw_uid), "--allow-gid", str(account.pw_gid), "--min-uid", "1000",
        ]  # fmt: skip
        with (self.directory / "keeper.log").open("ab") as out:
            self._keeper = subprocess.Popen(
                command, env=processes.marked(self.directory), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        _wait(path.exists, "the keeper's socket", self.directory / "keeper.log")

    def start_daemon(self, *, wrapper: Path | None = None, arguments: tuple[str, ...] = ()) -> None:
        """Start the daemon as its own account; `wrapper` is another program to start instead of its command."""
        program = [self._python, str(wrapper), *arguments] if wrapper else [self._python, "-m", "evalstopd", "run"]
        ready = self.directory / "notify.sock"
        ready.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, self.log.open("ab") as out:
            notify.bind(str(ready))
            ready.chmod(0o666)
            notify.settimeout(START_S)
            self._daemon = self._begin(program, {**self.environment, "NOTIFY_SOCKET": str(ready)}, out)
            try:
                while b"READY=1" not in notify.recv(4096):
                    pass
            except TimeoutError:
                raise RigError(f"the daemon does not say that it is ready: {last_lines(self.log)}") from None

    def _begin(self, program: list[str], environment: Mapping[str, str], out: IO[bytes]) -> Process:
        return subprocess.Popen(
            _as_daemon(program), env=environment, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip

    def daemon_ended(self, within_s: float = END_S) -> int | None:
        """Wait for the daemon to end by itself; return its exit code, None if it still runs."""
        if self._daemon is None:
            return None
        try:
            return self._daemon.wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def stop_daemon(self) -> int | None:
        """End the daemon by SIGTERM; return its exit code."""
        return _end(self._daemon, signal.SIGTERM)

    def reload(self) -> None:
        """Let the daemon read its settings anew."""
        if self._daemon is not None:
            self._daemon.send_signal(signal.SIGHUP)

    def kill_daemon(self) -> None:
        _end(self._daemon, signal.SIGKILL)

    def stop(self) -> None:
        self.stop_daemon()
        _end(self._keeper, signal.SIGTERM)

    def command(self, *arguments: str, user: str = users.DAEMON) -> subprocess.CompletedProcess[str]:
        """Run `evalstopd ARGUMENTS` under an account; its exit code is the caller's."""
        command = ["runuser", "-u", user, "--", self._python, "-m", "evalstopd", *arguments]
        return subprocess.run(
            command, env=self.environment, cwd=self.directory, capture_output=True, text=True, timeout=COMMAND_S,
            check=False,
        )  # fmt: skip

    def json(self, *arguments: str) -> Any:
        """Run a command with --json and return what it says."""
        done = self.command(*arguments, "--json")
        if not done.stdout:
            raise RigError(f"evalstopd {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def _give(path: Path) -> None:
    account = pwd.getpwnam(users.DAEMON)
    os.chown(path, account.pw_uid, account.pw_gid)


def _as_daemon(program: list[str]) -> list[str]:
    account = pwd.getpwnam(users.DAEMON)
    ids = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}"]
    # setpriv execs, so that a signal to the process reaches the daemon itself, without a runuser in between.
    return ["setpriv", *ids, "--clear-groups", "--no-new-privs", "--", *program]


def _end(process: Process | None, number: signal.Signals) -> int | None:
    if process is None:
        return None
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(END_S)


def _wait(holds: Any, what: str, log: Path) -> None:
    end = time.monotonic() + START_S
    while not holds():
        if time.monotonic() > end:
            raise RigError(f"{what} does not appear: {last_lines(log)}")
        time.sleep(0.05)


def section(name: str, values: Mapping[str, object]) -> str:
    """Return a section as TOML; a tuple of mappings becomes `[[name.key]]` tables."""
    tables = {key: value for key, value in values.items() if isinstance(value, tuple)}
    text = f"[{name}]\n" + _lines({key: value for key, value in values.items() if key not in tables})
    return text + "".join(f"[[{name}.{key}]]\n{_lines(each)}" for key, value in tables.items() for each in value)


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
