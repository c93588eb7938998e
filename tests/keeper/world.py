"""What the keeper's tests stand on: real users, a real keeper process, checkpoints as trainers write them."""

import contextlib
import io
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

KEEPER = Path(__file__).parents[2] / "evalstopd/keeper/keeper.py"
PYTHON = "/usr/bin/python3"
USERS = ("evsalice", "evsbob")
SHARDS = 36
T = TypeVar("T")


def require_root() -> None:
    """Skip loudly where the tests cannot become other users."""
    if os.geteuid() != 0:
        pytest.skip("KEEPER NOT TESTED: needs root, to become two unprivileged users")
    for tool in (PYTHON, "/usr/sbin/useradd"):
        if not os.access(tool, os.X_OK):
            pytest.skip(f"KEEPER NOT TESTED: no {tool}")


def user(name: str) -> pwd.struct_passwd:
    """Give the user of that name, made if need be."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name)
    made = ["/usr/sbin/useradd", "--no-create-home", "--user-group", "--shell", "/usr/sbin/nologin", name]
    subprocess.run(made, check=False, capture_output=True)  # another test run may have been faster
    return pwd.getpwnam(name)


@dataclass(frozen=True, slots=True)
class World:
    """Two users, each with a folder of their own below a common root; alice's job saves to alice/run."""

    root: Path
    alice: pwd.struct_passwd
    bob: pwd.struct_passwd

    @property
    def run(self) -> Path:
        """The output_dir of alice's job."""
        return self.root / "alice/run"

    @property
    def home(self) -> Path:
        """Where pins of alice's job must lie."""
        return self.root / "alice/.evalstop/c-7-100"

    def ask(self, verb: str, step: int = 200, **other: object) -> dict[str, Any]:
        """Compose a request about alice's job."""
        request = {"verb": verb, "uid": self.alice.pw_uid, "output_dir": str(self.run), "pin": "c-7-100"}
        if verb in ("pin", "repin", "log"):
            request |= {"since_s": 0, "metric": "eval/reward", "score": 0.5, "later": 0}
        return request | {"step": step} | other

    def asked(self, verb: str) -> bytes:
        """Compose the same as bytes."""
        return json.dumps(self.ask(verb)).encode()

    def save(self, step: int = 200) -> Path:
        """Let alice's trainer save a checkpoint of 41 files."""
        folder = self.run / f"checkpoint-{step}"
        write_checkpoint(folder)
        give(folder, self.alice)
        return folder


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Make the folders, where everybody may pass, and remove them."""
    require_root()
    root = Path(tempfile.mkdtemp(prefix="evs-keeper-", dir="/var/tmp")).resolve()
    root.chmod(0o755)
    alice, bob = (user(name) for name in USERS)
    try:
        for name, owner in (("alice", alice), ("bob", bob)):
            (root / name / "run").mkdir(parents=True)
            give(root / name, owner)
        yield World(root, alice, bob)
    finally:
        shutil.rmtree(root)


def give(path: Path, owner: pwd.struct_passwd) -> None:
    """Chown a tree, links themselves included."""
    os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            os.chown(os.path.join(folder, name), owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def write_checkpoint(folder: Path) -> None:
    """Write what trainers write: shards, an index, a zip, an older pickle, a subfolder, the marker last."""
    (folder / "global_step").mkdir(parents=True)
    names = [f"model-{number:05}.safetensors" for number in range(SHARDS)]
    for name in names:
        (folder / name).write_bytes(safetensors(1000))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {n: n for n in names}}))
    (folder / "optimizer.pt").write_bytes(zipped(b"moments" * 500))
    (folder / "scheduler.pt").write_bytes(b"\x80\x02older pickle")
    (folder / "global_step/rank_0.pt").write_bytes(zipped(b"shard"))
    (folder / "trainer_state.json").write_text('{"global_step": 200}')


def safetensors(size: int) -> bytes:
    """One tensor of that many bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def zipped(content: bytes) -> bytes:
    """A zip archive as torch.save writes it: stored, not compressed."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", content)
    return archive.getvalue()


def slow_checkpoint(place: World, gib: float = 3.5) -> Path:
    """Save a checkpoint with a sparse zip that is small on disk and takes long to check: so many GiB of zeros."""
    folder = place.save()
    block, blocks = bytes(2**24), int(gib * 64)
    size, crc = blocks * 2**24, 0
    for _ in range(blocks if gib < 1 else 0):  # larger ones are killed before it matters
        crc = zlib.crc32(block, crc)
    words = b"".join(word.to_bytes(4, "little") for word in (crc, size, size))
    common = b"\x14\0\0\0\0\0" + bytes(4) + words + b"\1\0\0\0"
    local = b"PK\x03\x04" + common + b"a"
    entry = b"PK\x01\x02\x14\0" + common + bytes(10) + bytes(4) + b"a"
    start = (len(local) + size).to_bytes(4, "little")
    end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0" + len(entry).to_bytes(4, "little") + start + b"\0\0"
    with (folder / "optimizer.pt").open("wb") as file:
        file.write(local)
        file.seek(len(local) + size)
        file.write(entry + end)
    give(folder, place.alice)
    return folder


@dataclass(frozen=True, slots=True)
class Keeper:
    """A running keeper."""

    process: subprocess.Popen[bytes]
    path: Path

    def __call__(self, request: object) -> dict[str, Any]:
        """Ask as root and give the answer."""
        return self.send(json.dumps(request).encode())

    def until_free(self, request: object, limit_s: float = 60) -> dict[str, Any]:
        """Ask until the owner's earlier request has ended."""
        end = time.monotonic() + limit_s
        while (answer := self(request)).get("kind") == "busy" and time.monotonic() < end:
            time.sleep(0.05)
        return answer

    def send(self, data: bytes) -> dict[str, Any]:
        """Send any bytes and give the answer, after checking that it has the promised form."""
        with self.connect() as peer:
            peer.send(data)
            return checked(peer.recv(70_000))

    def connect(self) -> socket.socket:
        """Connect as root."""
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.settimeout(60)
        peer.connect(str(self.path))
        return peer

    def child(self, but: Collection[int] = ()) -> int:
        """Wait until a child of the keeper's has become the owner's program, and give its pid."""
        return wait_for(lambda: [str(pid) for pid in self.children() if pid not in but and runs_as_owner(pid)], int)

    def children(self) -> list[int]:
        """Give the pids of the keeper's children."""
        return children(self.process.pid)


def children(pid: int) -> list[int]:
    """Give the pids of a process's children; none where it is gone."""
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def runs_as_owner(pid: int) -> bool:
    """Whether a child has executed the owner's program."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:4] == [b"-I", b"-S", b"-"]
    return False


def checked(answer: bytes) -> dict[str, Any]:
    """Decode an answer: one line of printable ASCII whatever was asked."""
    text = answer.decode("ascii")
    assert text.isprintable()
    decoded: dict[str, Any] = json.loads(text)
    if decoded["ok"]:
        assert set(decoded) in ({"ok", "path", "files", "bytes", "manifest"}, {"ok", "file", "digest", "series"})
    else:
        assert set(decoded) == {"ok", "kind", "why"}
        assert decoded["kind"] in {"busy", "missing", "incomplete", "changed", "refused", "failed"}
        assert decoded["why"].isascii()
        assert decoded["why"].isprintable()
    return decoded


def wait_for(look: Callable[[], list[str]], convert: Callable[[str], T], limit_s: float = 30) -> T:
    """Look every few milliseconds until there is something."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if seen := look():
            return convert(seen[0])
        time.sleep(0.002)
    raise TimeoutError


@contextlib.contextmanager
def keeper(root: Path, *flags: str, program: Path = KEEPER) -> Iterator[Keeper]:
    """Run a keeper that root alone may ask unless the flags say more; it must end well on SIGTERM."""
    running = start_keeper(root, *flags, program=program)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0
    assert not running.path.exists()


def start_keeper(root: Path, *flags: str, program: Path = KEEPER) -> Keeper:
    """Start a keeper that the caller ends."""
    path = root / f"keeper-{len(list(root.iterdir()))}.sock"
    flags = flags if "--allow-uid" in flags else ("--allow-uid", "0", *flags)
    command = [PYTHON, "-I", "-S", str(program), "--socket", str(path), *flags]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: [str(path)] if is_listening(path) else [], str, 60)
    except TimeoutError:
        process.kill()
        process.wait()
        raise
    return Keeper(process, path)


ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-I", "-S", sys.argv[2], "--allow-uid", "0"])
"""


@contextlib.contextmanager
def activated(root: Path, program: Path = KEEPER) -> Iterator[Keeper]:
    """Run a keeper as systemd does, which makes the socket and passes it."""
    path = root / "activated.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        command = [PYTHON, "-c", ACTIVATE, str(listener.fileno()), str(program)]
        process = subprocess.Popen(command, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
    try:
        yield Keeper(process, path)
    finally:
        process.terminate()
        assert process.wait(20) == 0


@contextlib.contextmanager
def mounted(kind: str, options: str, at: Path, source: str = "none") -> Iterator[None]:
    """Mount a file system; skip loudly where that is not allowed."""
    command = ["mount", "-t", kind, "-o", options, source, str(at)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        pytest.skip(f"NOT TESTED: cannot mount {kind} here: {ended.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


def small_checkpoint(place: World, step: int = 200) -> Path:
    """Save a checkpoint of four files, for tests that take each step of the keeper's apart."""
    folder = place.run / f"checkpoint-{step}"
    (folder / "global_step").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(safetensors(1000))
    (folder / "optimizer.pt").write_bytes(zipped(b"moments" * 500))
    (folder / "global_step/rank_0.pt").write_bytes(zipped(b"shard"))
    (folder / "trainer_state.json").write_text('{"global_step": 200}')
    give(folder, place.alice)
    return folder


def is_listening(path: Path) -> bool:
    """Whether a socket takes connections."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        return peer.connect_ex(str(path)) == 0
