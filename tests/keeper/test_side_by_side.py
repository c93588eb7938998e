"""Several requests at a time: no owner's trouble holds up the others, and there are never more than the bound."""

import json
import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.keeper.world import Keeper, World, keeper, slow_checkpoint, wait_for

pytestmark = pytest.mark.root

FREEZER = Path("/sys/fs/cgroup/freezer")


@contextmanager
def stopped_request(place: World, ask: Keeper, owner: pwd.struct_passwd) -> Iterator[socket.socket]:
    """Have the keeper begin something for an owner that then stands still: his file system is slow."""
    with ask.connect() as peer:
        known = set(ask.children())
        peer.send(json.dumps(place.ask("pin", uid=owner.pw_uid)).encode())
        child = ask.child(but=known)
        os.kill(child, signal.SIGSTOP)
        try:
            yield peer
        finally:
            if child in ask.children():
                os.kill(child, signal.SIGKILL)


def bobs(place: World) -> dict[str, object]:
    """Compose a request about bob's job."""
    return place.ask("drop", uid=place.bob.pw_uid, output_dir=str(place.root / "bob/run"))


def test_one_owners_slow_file_system_does_not_hold_up_another(place: World, ask: Keeper) -> None:
    slow_checkpoint(place)
    with stopped_request(place, ask, place.alice):
        for _ in range(3):
            assert ask(bobs(place))["ok"]


def test_a_second_request_of_the_same_owner_is_busy_until_the_first_has_ended(place: World, ask: Keeper) -> None:
    place.save()
    with stopped_request(place, ask, place.alice) as peer:
        answer = ask(place.ask("verify"))
        assert (answer["kind"], answer["why"]) == ("busy", "1 requests at work, one of each owner")
        os.kill(ask.children()[0], signal.SIGCONT)
        assert json.loads(peer.recv(70_000))["ok"]

    assert ask(place.ask("verify"))["ok"]


def state_of(pid: int) -> str:
    """Return the letter of a process's state; X where it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "X"


def stopped(place: World, ask: Keeper, uid: int) -> socket.socket:
    """Have the keeper begin something for an owner who stops it: asked anew where it ended before it stood still."""
    for _ in range(100):
        known, peer = set(ask.children()), ask.connect()
        peer.send(json.dumps(place.ask("drop", uid=uid)).encode())
        with suppress(TimeoutError, OSError):
            child = wait_for(lambda known=known: [str(pid) for pid in ask.children() if pid not in known], int, 2)
            os.kill(child, signal.SIGSTOP)
            if wait_for(lambda child=child: [state for state in state_of(child) if state in "TZX"], str) == "T":
                return peer
        peer.close()
    raise AssertionError(f"no child of {uid} could be stopped")


def test_a_handful_of_owners_who_stop_their_children_hold_up_nobody(place: World) -> None:
    """Nobody keeps an owner from stopping his own child: fewer than are served at a time cost the others nothing."""
    known = (0, place.alice.pw_uid, place.bob.pw_uid)
    others = [each.pw_uid for each in pwd.getpwall() if each.pw_uid not in known][:8]
    with keeper(place.root, "--min-uid", "1") as ask, ExitStack() as peers:
        for uid in others:
            peers.enter_context(stopped(place, ask, uid))
        try:
            assert len(ask.children()) == len(others) > 4
            assert ask(bobs(place))["ok"]
        finally:
            for child in ask.children():
                os.kill(child, signal.SIGKILL)


def test_more_owners_than_the_bound_are_busy(place: World) -> None:
    slow_checkpoint(place)
    with keeper(place.root, "--max-children", "1") as ask:
        with stopped_request(place, ask, place.alice):
            assert ask(bobs(place))["kind"] == "busy"
            assert len(ask.children()) == 1
        assert ask.until_free(bobs(place))["ok"]


@pytest.mark.timed
def test_peers_that_never_speak_do_not_hold_up_others(place: World, ask: Keeper) -> None:
    with ExitStack() as silent:
        for _ in range(40):
            silent.enter_context(ask.connect())
        start = time.monotonic()

        assert ask(bobs(place))["ok"]
        assert time.monotonic() - start < 2, "that is how long one of them may be silent"


def test_more_silent_peers_than_are_let_in_wait_at_the_door_and_are_sent_away(place: World, ask: Keeper) -> None:
    with ExitStack() as silent:
        for _ in range(100):
            silent.enter_context(ask.connect())

        assert ask(bobs(place))["ok"]


def test_sigterm_answers_each_request_at_work(place: World) -> None:
    place.save()
    with (
        keeper(place.root) as ask,
        stopped_request(place, ask, place.alice) as hers,
        stopped_request(place, ask, place.bob) as his,
    ):
        ask.process.terminate()
        for child in ask.children():
            os.kill(child, signal.SIGCONT)

        assert json.loads(hers.recv(70_000))["ok"]
        assert json.loads(his.recv(70_000))["kind"] == "refused"
        assert ask.process.wait(20) == 0


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Give a cgroup whose frozen processes not even SIGKILL ends: as if they waited for a dead file server."""
    if not os.access(FREEZER / "cgroup.procs", os.W_OK):
        pytest.skip("UNKILLABLE CHILD NOT TESTED: no freezer of cgroups v1 here")
    group = FREEZER / f"evs-keeper-{os.getpid()}"
    group.mkdir()
    yield group
    (group / "freezer.state").write_text("THAWED")
    end = time.monotonic() + 20
    while (group / "cgroup.procs").read_text() and time.monotonic() < end:
        time.sleep(0.01)
    group.rmdir()


def test_a_child_that_cannot_be_killed_costs_its_owner_alone(place: World, freezer: Path) -> None:
    """Its peer is told in time, others are served, its owner is busy until it is gone; no second child of his."""
    slow_checkpoint(place)
    with keeper(place.root, "--time-limit-s", "3") as ask:
        with ask.connect() as peer:
            peer.send(json.dumps(place.ask("pin")).encode())
            child = ask.child()
            (freezer / "cgroup.procs").write_text(str(child))
            (freezer / "freezer.state").write_text("FROZEN")

            assert json.loads(peer.recv(70_000))["why"] == "timed out after 3 s"
        assert child in ask.children()
        assert ask(bobs(place))["ok"]
        assert ask(place.ask("verify"))["kind"] == "busy"

        (freezer / "freezer.state").write_text("THAWED")
        assert ask.until_free(place.ask("verify"))["kind"] == "missing"


def test_the_keeper_ends_on_sigterm_though_a_child_cannot_be_killed(place: World, freezer: Path) -> None:
    slow_checkpoint(place)
    with keeper(place.root, "--time-limit-s", "3") as ask, ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        (freezer / "cgroup.procs").write_text(str(ask.child()))
        (freezer / "freezer.state").write_text("FROZEN")
        ask.process.terminate()

        assert json.loads(peer.recv(70_000))["why"] == "timed out after 3 s"
        assert ask.process.wait(10) == 0


def test_an_owner_with_processes_beyond_his_limit_is_served(place: World) -> None:
    """The keeper's limit of processes is none that an owner's other work could use up."""
    place.save()
    alice = place.alice
    busy = [subprocess.Popen(["sleep", "60"], user=alice.pw_uid, group=alice.pw_gid, extra_groups=[]) for _ in range(5)]
    try:
        with keeper(place.root) as ask:
            assert ask(place.ask("pin"))["ok"]
    finally:
        for process in busy:
            process.kill()
            process.wait()
