"""An owner who swaps folders and files while the keeper looks at them: nothing of another's is ever pinned."""

import ctypes
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.keeper.owner import AsOwner
from tests.keeper.world import Keeper, World, give, small_checkpoint

pytestmark = pytest.mark.root

SECRET = b"bob's weights" * 100
EXCHANGE = 2  # of renameat2(2): both names swap at one moment
RENAMEAT2 = 316
RACE_S = 4.0
PATIENCE_S = 60.0


def exchange(one: Path, other: Path) -> None:
    """Swap two names at one moment; skip where the kernel or the file system cannot."""
    names = [os.fsencode(one), os.fsencode(other)]
    if ctypes.CDLL(None, use_errno=True).syscall(RENAMEAT2, -100, names[0], -100, names[1], EXCHANGE):
        pytest.skip(f"SWAP RACE NOT TESTED: renameat2: {os.strerror(ctypes.get_errno())}")


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Swap two names over and over, each time for a moment that differs; they end as they began."""
    exchange(one, other)
    exchange(one, other)
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set() or number % 2:
            exchange(one, other)
            number += 1
            time.sleep((number % 7) * 0.0004)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def link_to_bobs(place: World, name: Path, bobs: Path) -> Path:
    """Give alice a symbolic link to something of bob's, beside the name it will be swapped with."""
    link = name.with_name(f"other-{name.name}") if name.parent == place.run else place.root / "alice/other"
    link.symlink_to(bobs)
    os.chown(link, place.alice.pw_uid, place.alice.pw_gid, follow_symlinks=False)
    return link


def bobs_twin(place: World, target: Path) -> Path:
    """Give bob, readable by all, what alice has at a place, with contents of his own."""
    twin = place.root / "bob/twin"
    if target.is_dir():
        twin.mkdir()
        for path in target.iterdir():
            (twin / path.name).write_bytes(SECRET)
    else:
        twin.write_bytes((SECRET * 10)[: target.stat().st_size])  # as large: no look at sizes tells them apart
    give(twin, place.bob)
    return twin


def require_none_of_bobs(place: World) -> None:
    for path in place.home.rglob("*"):
        assert path.lstat().st_uid == place.alice.pw_uid, path
        assert path.is_dir() or SECRET[:50] not in path.read_bytes(), path


@pytest.mark.parametrize("level", ["checkpoint-200", "checkpoint-200/global_step", "checkpoint-200/optimizer.pt"])
def test_a_name_swapped_for_a_link_between_check_and_link_never_pins_what_it_leads_to(
    place: World, ask: Keeper, level: str
) -> None:
    small_checkpoint(place)
    target = place.run / level
    link = link_to_bobs(place, target, bobs_twin(place, target))
    kinds: set[str] = set()
    began = time.monotonic()

    with swapping(target, link):
        while (lasted_s := time.monotonic() - began) < RACE_S or ("refused" not in kinds and lasted_s < PATIENCE_S):
            answer = ask(place.ask("pin"))
            kinds.add(answer.get("kind", "ok"))
            require_none_of_bobs(place)
            ask(place.ask("drop"))

    assert kinds <= {"ok", "refused", "incomplete", "missing"}
    assert "refused" in kinds, "the race was never met"
    assert ask(place.ask("pin"))["ok"]


def test_a_folder_swapped_for_another_of_the_owners_gives_one_of_them_whole_or_none(place: World, ask: Keeper) -> None:
    """Both are the owner's, so he may have either; never some files of each."""
    small_checkpoint(place)
    other = small_checkpoint(place, 300)
    for path in other.rglob("*"):
        if path.is_file() and path.name != "trainer_state.json":
            path.write_bytes(path.read_bytes())
    inodes = [
        {path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
        for folder in (place.run / "checkpoint-200", other)
    ]
    end = time.monotonic() + RACE_S

    with swapping(place.run / "checkpoint-200", other):
        while time.monotonic() < end:
            if ask(place.ask("pin"))["ok"]:
                pinned = {path.stat().st_ino for path in (place.home / "step-200").rglob("*") if path.is_file()}
                assert pinned in inodes
            assert ask(place.ask("drop"))["ok"]


def test_the_pins_folder_swapped_for_a_link_never_writes_where_it_leads(place: World, ask: Keeper) -> None:
    """A folder of bob's that all may write: what is made there would be alice's, but outside her folders."""
    small_checkpoint(place)
    ask(place.ask("pin"))
    ask(place.ask("drop"))
    open_folder = place.root / "bob/open"
    open_folder.mkdir()
    give(open_folder, place.bob)
    open_folder.chmod(0o777)
    link = link_to_bobs(place, place.home, open_folder)
    end = time.monotonic() + RACE_S

    with swapping(place.home, link):
        while time.monotonic() < end:
            ask(place.ask("pin"))
            ask(place.ask("drop"))

    assert list(open_folder.iterdir()) == []
    assert ask(place.ask("pin"))["ok"]


NO_SUCH_STEP = 3  # the exit code where there were fewer
SWAP_BEFORE_STEP = """
import atexit, os
LOOKS = {"listdir", "lstat", "open", "link"}
seen, at, back, target, link = 0, int(sys.argv[1]), sys.argv[2] == "back", sys.argv[3], sys.argv[4]
def look(frame, event, function):
    global seen
    if event == "c_call" and function.__module__ == "posix" and function.__name__ in LOOKS:
        seen += 1
        if seen == at:
            os.rename(target, target + ".aside")
            os.rename(link, target)
        elif seen == at + 1 and back:
            os.rename(target, link)
            os.rename(target + ".aside", target)
sys.setprofile(look)
atexit.register(lambda: os._exit(3) if seen < at + back else None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["checkpoint-200/global_step", "checkpoint-200/optimizer.pt"])
def test_a_name_swapped_before_each_single_step_never_pins_what_it_leads_to(
    place: World, ask: Keeper, level: str, as_owner: AsOwner
) -> None:
    """The race, without chance: the swap happens exactly before the first, the second, ... look or link."""
    small_checkpoint(place)
    target = place.run / level
    link = link_to_bobs(place, target, bobs_twin(place, target))
    aside, kinds = Path(f"{target}.aside"), []

    for step in range(1, 500):
        arguments = (str(step), "for good", str(target), str(link))
        code, said = as_owner(place.ask("pin"), SWAP_BEFORE_STEP, *arguments)
        kinds.append(json.loads(said).get("kind", "ok"))
        require_none_of_bobs(place)
        if code == NO_SUCH_STEP:
            break
        assert code == 0
        target.rename(link)
        aside.rename(target)
        if kinds[-1] == "ok":
            assert ask(place.ask("drop"))["ok"]

    assert kinds[-1] == "ok", "without a swap it is pinned"
    assert set(kinds) == {"ok", "refused", "incomplete"} or set(kinds) == {"ok", "refused"}
    assert kinds.count("refused") > 3


@pytest.mark.slow
def test_a_file_that_is_anothers_for_a_single_step_is_never_pinned(
    place: World, ask: Keeper, as_owner: AsOwner
) -> None:
    """A hard link to bob's file, as large as alice's, in its place from one look to the next: no later look tells."""
    small_checkpoint(place)
    target, link = place.run / "checkpoint-200/optimizer.pt", place.run / "other"
    os.link(bobs_twin(place, target), link)
    kinds: list[str] = []
    code = 0

    while code != NO_SUCH_STEP:
        arguments = (str(len(kinds) + 1), "back", str(target), str(link))
        code, said = as_owner(place.ask("pin"), SWAP_BEFORE_STEP, *arguments)
        kinds.append(json.loads(said).get("kind", "ok"))
        require_none_of_bobs(place)
        assert code == NO_SUCH_STEP or link.stat().st_uid == place.bob.pw_uid, "they ended as they began"
        if kinds[-1] == "ok":
            assert ask(place.ask("drop"))["ok"]

    assert kinds.count("refused") >= 3
