"""The keeper, the only part of evalstopd that runs as root: it lets checkpoints be pinned as their owner.

Root checks the peer and the shape of one JSON request a connection, forks, and waits. The child becomes the job's
owner for good, then executes as_owner.py, which does all file work and never runs as root. Several requests are
served at a time, one of each owner, so that nobody's slow file system holds up the others. No path of a request is
ever touched here, and of an answer only the length and the characters are looked at.
"""

import argparse
import ctypes
import errno
import json
import os
import pwd
import re
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from math import inf

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "as_owner.py")
MAX_MESSAGE = 64 * 1024  # bytes of a request or an answer; a pipe holds as much, so nobody waits on one
MAX_FILES, MAX_BYTES = 20_000, 32 * 1024**4  # of one checkpoint; a sparse file counts by its size
MAX_MEMORY = 512 * 1024**2  # bytes of address space of a child
MAX_CHILDREN = 16  # at a time; the unit's MemoryMax= is for as many
MAX_PEERS = 64  # connected at a time whose request has not come yet
PEER_TIME_S = 2.0  # for a connected peer to send its request
NO_NEW_PRIVS, DIE_WITH_PARENT = (38, 1), (1, signal.SIGKILL)  # of prctl(2)
SHAPES = {  # of a request's fields: type and whole value; text must be printable too
    "verb": (str, r"pin|repin|verify|publish|drop|log"),
    "uid": (int, r"[0-9]{1,10}"),
    "output_dir": (str, r"(?=.{2,4000}$)(/(?!\.\.?(/|$))[^/]+)+"),  # absolute; no '..', '.' or '//'
    "pin": (str, r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}"),
    "step": (int, r"[0-9]{1,15}"),
}
SHAPES_OF_PIN = {  # the same, of verbs pin, repin and log alone
    "since_s": (int, r"[0-9]{1,12}"),  # a checkpoint or log complete before is another one under the same name,
    "metric": (str, r".{0,250}"),  # and so is one whose trainer logged another score of this metric
    "score": (float, r"[-+0-9.e]{1,30}"),
    "later": (int, r"[01]"),  # 1: the training has logged a later eval, so whatever it saved at the step is saved
}


class Refusal(Exception):
    """The answer is no: (kind, why); kinds: busy, refused, failed, and those of as_owner.py."""


@dataclass(slots=True)
class Task:
    """A child at work: for which request, where its answer is read, and until when (monotonic) it may take.

    `peer` is None once it is answered: where not even SIGKILL ends a wait for a file system, the child stays.
    """

    peer: socket.socket | None
    data: bytes
    uid: int
    answer: int
    until_s: float
    why: str = ""


def parse(data: bytes, min_uid: int) -> argparse.Namespace:
    """Turn a peer's bytes into a request of the shapes above, or refuse."""
    try:
        asked = json.loads(data)
        shapes = SHAPES | (SHAPES_OF_PIN if asked.get("verb") in ("pin", "repin", "log") else {})
    except (ValueError, AttributeError, RecursionError):
        raise Refusal("refused", f"not one JSON object of at most {MAX_MESSAGE} bytes") from None
    wrong = asked.keys() ^ shapes.keys()
    for name in asked.keys() & shapes.keys():
        (kind, shape), value = shapes[name], asked[name]
        if type(value) is not kind or not str(value).isprintable() or not re.fullmatch(shape, str(value)):
            wrong.add(name)
    if wrong:
        raise Refusal("refused", f"malformed, missing or unknown: {', '.join(sorted(wrong))}")
    if asked["uid"] < max(1, min_uid):
        raise Refusal("refused", f"uid {asked['uid']} is below {max(1, min_uid)}")
    return argparse.Namespace(**asked)


def refusal(kind: str, why: str) -> bytes:
    """Write an answer of one printable line."""
    line = "".join(char if " " <= char <= "~" else "?" for char in why)[:400]
    return json.dumps({"ok": False, "kind": kind, "why": line}).encode()


def set_limits(**most: int) -> None:
    """Lower resource limits of this process and of what it executes, for good."""
    for name, value in most.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def become(uid: int, args: argparse.Namespace) -> None:
    """Turn this process into the owner: no privilege, little memory, no way back; it dies with the keeper."""
    try:
        owner = pwd.getpwuid(uid)
    except (KeyError, OverflowError):
        raise Refusal("refused", f"no user {uid}") from None
    groups, gid = os.getgrouplist(owner.pw_name, owner.pw_gid), owner.pw_gid
    set_limits(CORE=0, CPU=int(args.time_limit_s) + 1, AS=MAX_MEMORY, FSIZE=args.max_bytes)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    set_limits(NPROC=0)  # earlier, an owner who runs anything could execute nothing
    for option in (NO_NEW_PRIVS, DIE_WITH_PARENT):
        if ctypes.CDLL(None).prctl(*option, 0, 0, 0):
            raise OSError(errno.EPERM, "prctl")
    if os.getppid() != args.keeper:
        raise Refusal("failed", "the keeper is gone")
    os.umask(0o077)
    os.chdir("/")


def turn_into_owner(asked: argparse.Namespace, args: argparse.Namespace, request: int, answer: int) -> None:
    """Go on, in the child, as the owner's process. Root opens the program: the owner need not reach it."""
    signal.set_wakeup_fd(-1)  # before anybody but root may send this process a signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends the keeper, but no child at work
    program = os.open(PROGRAM, os.O_RDONLY)
    try:
        become(asked.uid, args)
        for ours, standard in ((program, 0), (answer, 1), (answer, 2)):
            os.dup2(ours, standard)
        os.set_inheritable(request, True)
        os.closerange(3, request)  # whatever else root was started with
        os.closerange(request + 1, 2**16)
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-", str(request)], {})  # noqa: S606 - no shell
    except Refusal as no:
        os.write(answer, refusal(*no.args))
    except Exception as error:  # noqa: BLE001 - whatever it is, the peer gets an answer
        os.write(answer, refusal("failed", repr(error)))


def start(asked: argparse.Namespace, args: argparse.Namespace) -> tuple[int, int]:
    """Fork; return the child's pid and the pipe that its answer comes through."""
    (request, request_in), (answer, answer_in) = os.pipe(), os.pipe()
    limits = {"max_files": args.max_files, "max_bytes": args.max_bytes}
    os.set_blocking(request_in, False)  # a kernel short of pipes may make it hold less
    try:
        os.write(request_in, json.dumps(vars(asked) | limits).encode())
        if not (child := os.fork()):
            try:
                turn_into_owner(asked, args, request, answer_in)
            finally:
                os._exit(1)
    except OSError:
        os.close(answer)
        raise
    finally:
        for end in (request, request_in, answer_in):
            os.close(end)
    os.set_blocking(answer, False)  # the owner may keep the other end open, or never have written
    return child, answer


def read_answer(answer: int) -> bytes:
    """Read what a child that is gone has said. It was the owner's process: only one printable line passes."""
    said = b""
    with suppress(BlockingIOError):
        said = os.read(answer, MAX_MESSAGE)
    os.close(answer)
    return said if not said or re.fullmatch(rb'\{"ok": [ -~]*\}', said) else refusal("failed", ascii(said[-300:]))


def reply(peer: socket.socket, asked: bytes, said: bytes) -> None:
    """Answer, hang up and log both; a peer that is gone is left alone."""
    peer_uid = uid_of(peer)
    with suppress(OSError), peer:
        peer.send(said)
    with suppress(OSError):
        sys.stderr.write(f"uid {peer_uid} asked {asked[:500]!a}, answer {said[:500]!a}\n")


def uid_of(peer: socket.socket) -> int:
    """Ask the kernel who connected."""
    return int.from_bytes(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)


class Keeper:
    """The loop: it waits for peers, for children that end, and for SIGTERM; it never waits for one of them alone."""

    def __init__(self, listener: socket.socket, args: argparse.Namespace) -> None:
        self.listener, self.args = listener, args
        self.peers: dict[socket.socket, float] = {}  # connected, until when (monotonic) their request may come
        self.tasks: dict[int, Task] = {}  # by the child's pid
        self.signals, signalled = os.pipe()
        for end in (self.signals, signalled):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(signalled)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run(self) -> None:
        """Serve until SIGTERM, then until each request at work is answered."""
        ending = False
        while not ending or any(task.peer for task in self.tasks.values()):
            waited_for: list[int | socket.socket] = [self.signals, *self.peers]
            if not ending and len(self.peers) < MAX_PEERS:
                waited_for.append(self.listener)
            ready, _, _ = select.select(waited_for, [], [], self.patience_s())
            if self.signals in ready:
                ending |= signal.SIGTERM in os.read(self.signals, 4096)
            for peer in self.peers.keys() & set(ready):
                self.attend(peer)
            if self.listener in ready:
                self.peers[self.listener.accept()[0]] = time.monotonic() + PEER_TIME_S
            self.look_after()

    def patience_s(self) -> float | None:
        """Return how long nothing is due."""
        due_s = min([*self.peers.values(), *(task.until_s for task in self.tasks.values())], default=inf)
        return None if due_s == inf else max(0.0, due_s - time.monotonic())

    def attend(self, peer: socket.socket) -> None:
        """Read a peer's request and start a child on it, or say why not."""
        del self.peers[peer]
        data = b""
        try:
            data = peer.recv(MAX_MESSAGE)
            if uid_of(peer) not in {0, self.args.allow_uid}:
                raise Refusal("refused", f"uid {uid_of(peer)} may not ask")
            asked = parse(data, self.args.min_uid)
            if len(self.tasks) >= self.args.max_children or asked.uid in {task.uid for task in self.tasks.values()}:
                raise Refusal("busy", f"{len(self.tasks)} requests at work, one of each owner")
            child, answer = start(asked, self.args)
            self.tasks[child] = Task(peer, data, asked.uid, answer, time.monotonic() + self.args.time_limit_s)
        except Refusal as no:
            reply(peer, data, refusal(*no.args))
        except OSError as error:
            reply(peer, data, refusal("failed", str(error)))

    def look_after(self) -> None:
        """Answer for each child that has ended; kill those past the time limit; send silent peers away."""
        now_s = time.monotonic()
        for child, task in list(self.tasks.items()):
            if os.waitpid(child, os.WNOHANG)[0]:
                del self.tasks[child]
                self.answer(task, read_answer(task.answer) or refusal("failed", task.why or "the child died"))
            elif now_s > task.until_s and not task.why:
                os.kill(child, signal.SIGKILL)
                task.why, task.until_s = f"timed out after {self.args.time_limit_s:g} s", now_s + PEER_TIME_S
            elif now_s > task.until_s:
                self.answer(task, refusal("failed", task.why))
        for peer in [peer for peer, until_s in self.peers.items() if now_s > until_s]:
            del self.peers[peer]
            reply(peer, b"", refusal("failed", "timed out"))

    def answer(self, task: Task, said: bytes) -> None:
        """Answer a task's peer, once."""
        if task.peer:
            reply(task.peer, task.data, said)
        task.peer, task.until_s = None, inf


def listen(path: str, gid: int) -> socket.socket:
    """Make a socket of mode 0660, root:gid; the group by our egid, which spares CAP_CHOWN."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.umask(0o117)
    os.setegid(gid)
    listener.bind(path)
    os.setegid(os.getgid())
    listener.listen()
    return listener


def user(text: str) -> int:
    """Read a uid, given as such or by name."""
    return int(text) if text.isdecimal() else pwd.getpwnam(text).pw_uid


def main() -> None:
    """Read the command line, listen, serve."""
    parser = argparse.ArgumentParser(description="Pins, verifies, publishes and drops checkpoints as their owner.")
    parser.add_argument("--socket", help="path of the socket to make, unless systemd passes one")
    parser.add_argument("--allow-uid", type=user, required=True, help="the daemon's user: uid or name")
    parser.add_argument("--allow-gid", type=int, default=0, help="group of the socket made (default: root)")
    parser.add_argument("--min-uid", type=int, default=1000, help="act for no user below (never for root)")
    parser.add_argument("--time-limit-s", type=float, default=60, help="for one request")
    parser.add_argument("--max-children", type=int, default=MAX_CHILDREN, help="requests served at a time")
    parser.add_argument("--max-files", type=int, default=MAX_FILES, help="of one checkpoint")
    parser.add_argument("--max-bytes", type=int, default=MAX_BYTES, help="of one checkpoint")
    args = parser.parse_args(namespace=argparse.Namespace(keeper=os.getpid()))
    if not os.access(PROGRAM, os.R_OK):
        parser.error(f"no {PROGRAM}: it belongs beside this program")
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1":
        return Keeper(socket.socket(fileno=3), args).run()
    listener = listen(args.socket or parser.error("no --socket, and none from systemd"), args.allow_gid)
    try:
        return Keeper(listener, args).run()
    finally:
        os.unlink(args.socket)


if __name__ == "__main__":
    main()
