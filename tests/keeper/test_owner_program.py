"""What runs as the owner may be tampered with by the owner: the root half lives with any program there."""

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from tests.keeper.owner import AsOwner
from tests.keeper.world import KEEPER, World, activated, give, keeper, small_checkpoint

pytestmark = pytest.mark.root

SPOKEN = {
    "nothing": "",
    "garbage": "os.write(1, b'\\xff\\x00\\x1b[2J')",
    "two lines": "os.write(1, b'{}\\n{}')",
    "escapes": 'os.write(1, b\'{"ok": true, "path": "\\x1b[2J"}\')',
    "no more than a pipe holds": "os.set_blocking(1, False); os.write(1, b'x' * 200_000)",
    "an exception": "raise RuntimeError('\\x1b[2J' * 10_000)",
    "an answer in two parts": "os.write(1, b'{'); os.write(1, b'\\xe2\\x80\\xae}')",
}
LIMIT = ("--time-limit-s", "4")


def keeper_with(place: World, program: str) -> Path:
    """Install the real root half beside another program for the owner, in a folder that only root may enter."""
    folder = place.root / "lib"
    folder.mkdir(mode=0o700)
    shutil.copy(KEEPER, folder)
    (folder / "as_owner.py").write_text(f"import os, signal, socket, sys, time\n{program}\n")
    (folder / "as_owner.py").chmod(0o600)
    return folder / "keeper.py"


@pytest.mark.parametrize("name", SPOKEN)
def test_whatever_the_owners_process_says_the_peer_gets_one_printable_line(place: World, name: str) -> None:
    with keeper(place.root, *LIMIT, program=keeper_with(place, SPOKEN[name])) as ask, ask.connect() as peer:
        peer.send(place.asked("pin"))
        said = peer.recv(70_000).decode("ascii")

        assert said.isprintable()
        assert len(said) <= 64 * 1024
        assert peer.recv(70_000) == b""


@pytest.mark.parametrize(
    "program", ["os.close(1); os.close(2); time.sleep(60)", "os.write(1, b'x' * 10**6)", "time.sleep(60)"]
)
def test_a_process_that_goes_on_is_killed_at_the_time_limit(place: World, program: str) -> None:
    with keeper(place.root, *LIMIT, program=keeper_with(place, program)) as ask:
        assert ask(place.ask("pin"))["kind"] == "failed"
        assert ask.children() == []


@pytest.mark.timed
def test_an_answer_pipe_given_away_holds_nobody_up(place: World) -> None:
    """The owner passes the writing end to another process of his and ends: the keeper must not wait for it."""
    path = place.root / "alice/outside.sock"
    give_away = f"""
with socket.socket(socket.AF_UNIX) as friend:
    friend.connect({str(path)!r})
    socket.send_fds(friend, [b"x"], [1])
"""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        give(place.root / "alice", place.alice)
        with keeper(place.root, program=keeper_with(place, give_away)) as ask:
            start = time.monotonic()
            answer = ask(place.ask("pin"))
            friend, _ = listener.accept()
            _, kept, _, _ = socket.recv_fds(friend, 1, 1)
            friend.close()

            assert (answer["kind"], answer["why"]) == ("failed", "the child died")
            assert time.monotonic() - start < 30, "the time limit is a minute"
            assert ask(place.ask("verify"))["kind"] == "failed"
            for fd in kept:
                os.close(fd)


def test_signals_of_the_owner_to_his_process_never_reach_the_keeper(place: World) -> None:
    program = "\n".join(f"os.kill(os.getpid(), signal.{name})" for name in ("SIGTERM", "SIGCHLD", "SIGUSR1"))
    with keeper(place.root, *LIMIT, program=keeper_with(place, program)) as ask:
        for _ in range(3):
            assert ask(place.ask("pin"))["why"] == "the child died"
        assert ask.process.poll() is None


def test_it_has_nothing_of_roots_but_its_three_pipes(place: World) -> None:
    """No other descriptor, no environment, no argument but a number; it cannot fork, nor become root again."""
    program = """
import json
def link(fd):
    try:
        return [os.readlink(f"/proc/self/fd/{fd}").split(":")[0].split("/")[-1]]
    except FileNotFoundError:
        return []
def may(do):
    try:
        do()
        return True
    except OSError:
        return False
os.environ.pop("LC_CTYPE", None)  # Python's own, where there is no locale
fds = sorted(name for fd in os.listdir("/proc/self/fd") for name in link(fd))
deaf = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
path = json.dumps([fds, dict(os.environ), len(sys.argv), may(os.fork), may(lambda: os.setuid(0)), os.getcwd(), deaf])
os.write(1, json.dumps({"ok": True, "path": path, "files": 0, "bytes": 0, "manifest": ""}).encode())
"""
    with activated(place.root, keeper_with(place, program)) as ask:
        said = ask(place.ask("pin"))["path"]

    assert said == '[["as_owner.py", "pipe", "pipe", "pipe"], {}, 2, false, false, "/", true]'


def test_the_owners_program_refuses_to_run_as_root(place: World, as_owner: AsOwner) -> None:
    small_checkpoint(place)
    code, said = as_owner(place.ask("pin", uid=place.bob.pw_uid), "")

    assert (code, "not the owner's process" in said) == (0, True)
    assert not place.home.exists()


def test_the_root_half_fits_a_page_that_an_admin_can_read_and_never_loads_the_other(place: World) -> None:
    lines = KEEPER.read_text().splitlines()

    assert len(lines) <= 300
    assert max(map(len, lines)) <= 120
    assert not [line for line in lines if line.startswith(("import", "from")) and "owner" in line]
