"""Killed at any moment, the child or the keeper: under a pin's name lies a whole pin or nothing, and work goes on."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.keeper.owner import AsOwner
from tests.keeper.world import (
    Keeper,
    World,
    slow_checkpoint,
    small_checkpoint,
    start_keeper,
    wait_for,
)

pytestmark = pytest.mark.root

KILL_BEFORE_STEP = """
import os, signal
EFFECTS = {"mkdir", "link", "fsync", "fchmod", "rename", "symlink", "unlink", "rmdir", "flush", "sendfile"}
done, last = [], int(sys.argv[1])
def look(frame, event, function):
    if event == "c_call" and function.__name__ in EFFECTS:
        if len(done) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        done.append(function.__name__)
sys.setprofile(look)
"""


def require_whole_or_nothing(place: World, ask: Keeper) -> None:
    """Fail if anything partial can be seen under a name that means a pin."""
    best = place.home / "best"
    if (place.home / "step-200").exists():
        assert ask(place.ask("verify"))["files"] == 4
    if best.is_symlink():
        assert (best.resolve() / "trainer_state.json").is_file()
        assert ask(place.ask("verify"))["ok"]


def steps(place: World, ask: Keeper, verb: str, as_owner: AsOwner) -> int:
    """Kill a verb before each of its effects in turn, look each time, and give how many there were."""
    for number in range(200):
        code, answer = as_owner(place.ask(verb), KILL_BEFORE_STEP, str(number))
        require_whole_or_nothing(place, ask)
        if code == 0:
            assert json.loads(answer)["ok"], answer
            return number
        assert code == -signal.SIGKILL
        if verb != "pin":
            assert ask(place.ask("pin"))["ok"]
    raise AssertionError("it never ended")


def test_a_pin_killed_before_each_of_its_effects_is_whole_or_not_there(
    place: World, ask: Keeper, as_owner: AsOwner
) -> None:
    """Every attempt starts over what the one before left."""
    small_checkpoint(place)

    assert steps(place, ask, "pin", as_owner) > 20
    assert ask(place.ask("verify"))["files"] == 4


def test_a_publish_killed_before_each_of_its_effects_leaves_no_best_or_a_whole_one(
    place: World, ask: Keeper, as_owner: AsOwner
) -> None:
    small_checkpoint(place)
    ask(place.ask("pin"))

    assert steps(place, ask, "publish", as_owner) > 5
    assert ask(place.ask("publish"))["ok"]


def test_a_drop_killed_before_each_of_its_effects_leaves_a_whole_pin_or_none(
    place: World, ask: Keeper, as_owner: AsOwner
) -> None:
    small_checkpoint(place)
    ask(place.ask("pin"))
    ask(place.ask("publish"))

    assert steps(place, ask, "drop", as_owner) > 5
    assert list(place.home.iterdir()) == []


def test_a_pin_made_anew_and_killed_before_each_of_its_effects_is_the_old_or_the_new_one(
    place: World, ask: Keeper, as_owner: AsOwner
) -> None:
    for number in range(200):
        shutil.rmtree(place.run / "checkpoint-200", ignore_errors=True)
        small_checkpoint(place)
        old = ask(place.ask("repin"))["manifest"]
        shutil.rmtree(place.run / "checkpoint-200")
        small_checkpoint(place)
        code, answer = as_owner(place.ask("repin"), KILL_BEFORE_STEP, str(number))
        found = ask(place.ask("verify"))
        assert found["ok"], (number, found)
        if code == 0:
            break
        assert code == -signal.SIGKILL

    assert number > 20
    assert found["manifest"] == json.loads(answer)["manifest"] != old
    assert sorted(path.name for path in place.home.iterdir()) == ["step-200", "step-200.json"]


def test_a_pin_stays_where_there_is_nothing_to_make_it_anew_of(place: World, ask: Keeper) -> None:
    small_checkpoint(place)
    kept = ask(place.ask("pin"))
    shutil.rmtree(place.run / "checkpoint-200")
    assert ask(place.ask("repin"))["kind"] == "missing"
    small_checkpoint(place)
    assert ask(place.ask("repin", since_s=int(time.time()) + 60))["kind"] == "incomplete"

    assert ask(place.ask("verify")) == kept


def test_a_drop_finishes_what_a_killed_pin_left_with_half_a_manifest(place: World, ask: Keeper) -> None:
    small_checkpoint(place)
    ask(place.ask("pin"))
    (place.home / "step-200").rename(place.home / ".tmp-step-200")
    (place.home / "step-200.json").write_text("[[")

    assert ask(place.ask("drop"))["ok"]
    assert list(place.home.iterdir()) == []


def test_the_child_dies_with_a_killed_keeper(place: World, ask: Keeper) -> None:
    """Else it could still be at work when the next keeper starts another child on the same pin."""
    slow_checkpoint(place)
    doomed = start_keeper(place.root)
    with doomed.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        child = doomed.child()
        wait_for(lambda: [str(child)] if (place.home / ".tmp-step-200/optimizer.pt").exists() else [], int)
        doomed.process.kill()
        doomed.process.wait()
        assert peer.recv(70_000) == b""
    wait_for(lambda: [str(child)] if has_ended(child) else [], int)

    assert [path.name for path in place.home.iterdir()] == [".tmp-step-200"]
    shutil.rmtree(place.run / "checkpoint-200")
    small_checkpoint(place)
    assert ask(place.ask("pin"))["files"] == 4


@pytest.mark.parametrize("delay_ms", [0, 2, 5, 10, 20, 30, 40, 60, 80, 120, 200])
def test_a_keeper_killed_at_any_time_leaves_a_whole_pin_or_none(place: World, ask: Keeper, delay_ms: int) -> None:
    small_checkpoint(place)
    doomed = start_keeper(place.root)
    with doomed.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        time.sleep(delay_ms / 1000)
        before = doomed.children()
        doomed.process.kill()
        doomed.process.wait()
    for child in before:
        wait_for(lambda pid=child: [str(pid)] if has_ended(pid) else [], int)

    require_whole_or_nothing(place, ask)
    assert ask(place.ask("pin"))["files"] == 4


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits to be reaped by whoever adopted it."""
    try:
        return re.search(r"^State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) is not None
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_kill_harness_kills_where_it_says(place: World, as_owner: AsOwner) -> None:
    """A check of the check: before the first effect nothing has happened, without a kill everything has."""
    small_checkpoint(place)

    assert as_owner(place.ask("pin"), KILL_BEFORE_STEP, "0") == (-signal.SIGKILL, "")
    assert not place.home.parent.exists()
    assert as_owner(place.ask("pin"), KILL_BEFORE_STEP, "1000")[0] == 0
    assert sorted(os.listdir(place.home)) == ["step-200", "step-200.json"]
