"""The keeper as a process: who may ask, what the child may do, time-outs, kills, signals."""

import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.keeper.world import KEEPER, PYTHON, Keeper, World, activated, give, keeper, slow_checkpoint, wait_for

pytestmark = pytest.mark.root

ASK = """
import socket, sys
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect(sys.argv[1])
peer.send(sys.argv[2].encode())
print(peer.recv(70000).decode())
"""


def ask_as(user: pwd.struct_passwd, path: Path, request: object) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-I", "-S", "-c", ASK, str(path), json.dumps(request)]
    return subprocess.run(
        command,
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def test_the_child_is_the_owner_without_any_privilege(place: World, ask: Keeper) -> None:
    slow_checkpoint(place)
    with ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        child = ask.child()
        wait_for(lambda: [str(child)] if (place.home / ".tmp-step-200/optimizer.pt").exists() else [], int)
        # Its files come and go while it works.
        os.kill(child, signal.SIGSTOP)
        wait_for(lambda: [str(child)] if status_of(child)["State"].startswith("T") else [], int)
        status, alice = status_of(child), place.alice
        limits = Path(f"/proc/{child}/limits").read_text()
        opened = {os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")}
        os.kill(child, signal.SIGKILL)
        answer = json.loads(peer.recv(70_000))

    assert status["Uid"].split() == [str(alice.pw_uid)] * 4
    assert status["Gid"].split() == [str(alice.pw_gid)] * 4
    assert set(status["Groups"].split()) == {str(gid) for gid in os.getgrouplist("evsalice", alice.pw_gid)}
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Umask"]) == ("1", "0077")
    assert not [name for name in opened if name.startswith("socket:")]
    assert "Max core file size        0 " in limits
    assert "Max processes             0 " in limits
    assert (answer["kind"], answer["why"]) == ("failed", "the child died")


def test_a_child_killed_between_link_and_rename_publishes_nothing_and_the_next_pin_works(
    place: World, ask: Keeper
) -> None:
    folder = slow_checkpoint(place)
    with ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        child = ask.child()
        wait_for(lambda: [str(child)] if (place.home / ".tmp-step-200/optimizer.pt").exists() else [], int)
        os.kill(child, signal.SIGKILL)
        assert json.loads(peer.recv(70_000))["kind"] == "failed"
    assert [path.name for path in place.home.iterdir()] == [".tmp-step-200"]
    assert ask(place.ask("verify"))["kind"] == "missing"

    (folder / "optimizer.pt").unlink()

    assert ask(place.ask("pin"))["files"] == 40
    assert sorted(path.name for path in place.home.iterdir()) == ["step-200", "step-200.json"]


def test_drop_clears_what_a_killed_child_left(place: World, ask: Keeper) -> None:
    place.save()
    (place.home / ".tmp-step-200/sub").mkdir(parents=True)
    (place.home / ".tmp-step-200/sub").chmod(0o500)
    give(place.home.parent, place.alice)

    assert ask(place.ask("drop"))["ok"]
    assert list(place.home.iterdir()) == []


@pytest.mark.timed
def test_a_child_past_the_time_limit_is_killed_and_the_keeper_goes_on(place: World) -> None:
    slow_checkpoint(place)
    place.save(300)
    with keeper(place.root, "--time-limit-s", "3") as ask:
        begun = time.monotonic()
        answer = ask(place.ask("pin"))

        assert (answer["kind"], answer["why"]) == ("failed", "timed out after 3 s")
        assert time.monotonic() - begun < 8
        assert ask(place.ask("pin", 300))["ok"]
    assert not (place.home / "step-200").exists()


def test_a_child_stopped_by_its_owner_is_killed_too(place: World) -> None:
    slow_checkpoint(place)
    with keeper(place.root, "--time-limit-s", "3") as ask, ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        os.kill(ask.child(), signal.SIGSTOP)

        assert json.loads(peer.recv(70_000))["why"] == "timed out after 3 s"


def test_sigterm_lets_the_running_child_finish(place: World) -> None:
    slow_checkpoint(place)
    with keeper(place.root, "--time-limit-s", "4") as ask, ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        child = ask.child()
        wait_for(lambda: [str(child)] if (place.home / ".tmp-step-200/optimizer.pt").exists() else [], int)
        ask.process.terminate()
        os.kill(child, signal.SIGTERM)  # as a service manager that signals the whole group does

        assert json.loads(peer.recv(70_000))["why"] == "timed out after 4 s"
        assert ask.process.wait(20) == 0
    assert not ask.path.exists()


def test_the_socket_refuses_strangers_by_its_mode(place: World) -> None:
    bob = place.bob
    with keeper(place.root, "--allow-uid", str(bob.pw_uid), "--allow-gid", str(bob.pw_gid)) as ask:
        status = ask.path.stat()
        assert (0, bob.pw_gid, 0o660) == (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode))

        assert "PermissionError" in ask_as(place.alice, ask.path, place.ask("drop")).stderr
        assert json.loads(ask_as(bob, ask.path, place.ask("drop")).stdout)["ok"]


def test_a_peer_of_another_uid_is_refused_even_where_the_mode_lets_him_in(place: World) -> None:
    place.save()
    with keeper(place.root, "--allow-uid", "evsbob", "--allow-gid", str(place.alice.pw_gid)) as ask:
        answer = json.loads(ask_as(place.alice, ask.path, place.ask("pin")).stdout)

        assert answer == {"ok": False, "kind": "refused", "why": f"uid {place.alice.pw_uid} may not ask"}
        assert ask(place.ask("pin"))["ok"], "root may always ask"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"1",
        b'"pin"',
        b"\xff\xfe",
        b"[" * 60_000,
        b'{"uid": ' + b"9" * 5000 + b"}",
        b'{"a": "' + b"x" * 100_000 + b'"}',
        b"{}",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_garbage_gets_one_refusal_and_never_ends_the_keeper(place: World, ask: Keeper, data: bytes) -> None:
    with ask.connect() as peer:
        peer.send(data)
        assert json.loads(peer.recv(70_000))["kind"] == "refused"
        assert peer.recv(70_000) == b""

    assert ask(place.ask("drop"))["ok"]


def test_a_peer_that_hangs_up_or_never_speaks_does_not_end_the_keeper(place: World, ask: Keeper) -> None:
    place.save()
    ask.connect().close()
    with ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())

    assert ask.until_free(place.ask("verify"))["ok"]
    with ask.connect() as silent:
        assert json.loads(silent.recv(70_000))["why"] == "timed out"
    assert ask(place.ask("verify"))["ok"]


@pytest.mark.parametrize("uid", [0, 999])
def test_users_below_the_least_uid_are_refused(place: World, ask: Keeper, uid: int) -> None:
    assert "below 1000" in ask(place.ask("drop", uid=uid))["why"]


def test_root_is_refused_whatever_the_least_uid(place: World) -> None:
    with keeper(place.root, "--min-uid", "0") as ask:
        assert ask(place.ask("drop", uid=0))["why"] == "uid 0 is below 1"


def test_users_that_do_not_exist_are_refused(place: World, ask: Keeper) -> None:
    assert ask(place.ask("drop", uid=3_999_999_999)) == {
        "ok": False,
        "kind": "refused",
        "why": "no user 3999999999",
    }


def test_a_listening_socket_of_systemd_is_taken_and_left_in_place(place: World) -> None:
    with activated(place.root) as ask:
        assert ask(place.ask("drop"))["ok"]
    assert ask.path.exists()


def test_it_does_not_start_without_the_owners_program_beside_it(place: World) -> None:
    shutil.copy(KEEPER, place.root)
    command = [PYTHON, "-I", "-S", str(place.root / "keeper.py"), "--socket", str(place.root / "x"), "--allow-uid", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ended.returncode, "as_owner.py: it belongs beside" in ended.stderr) == (2, True)


def test_an_unprivileged_user_cannot_run_it_for_himself(place: World) -> None:
    """Without root's rights it cannot become another user; what it is then is no more than its caller."""
    command = [
        PYTHON,
        "-I",
        "-S",
        str(KEEPER),
        "--socket",
        str(place.root / "alice/x.sock"),
        "--allow-uid",
        "0",
    ]
    alice = place.alice
    ended = subprocess.run(
        command, user=alice.pw_uid, group=alice.pw_gid, extra_groups=[], capture_output=True, check=False
    )

    assert ended.returncode != 0
