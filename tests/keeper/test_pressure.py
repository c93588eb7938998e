"""Full disks and quotas, sparse exabytes, thousands of files, memory: refused or failed, and nothing is left behind."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.keeper.owner import AsOwner
from tests.keeper.world import (
    Keeper,
    World,
    give,
    keeper,
    mounted,
    small_checkpoint,
    write_checkpoint,
)

pytestmark = pytest.mark.root

# Lets every system call pass but one, which fails as it does where the quota is used up (seccomp, x86-64 or arm64).
FAIL_CALL = """
import ctypes, errno, os, struct
def instruction(code, value, met=0, unmet=0):
    return struct.pack("HBBI", code, met, unmet, value)
number = int(sys.argv[1])
program = b"".join([
    instruction(0x20, 0),
    instruction(0x15, number, 0, 1),
    instruction(0x06, 0x00050000 | errno.EDQUOT),
    instruction(0x06, 0x7FFF0000),
])
kept = ctypes.create_string_buffer(program)
filled = ctypes.create_string_buffer(struct.pack("HP", 4, ctypes.addressof(kept)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(filled), 0, 0) == 0, os.strerror(ctypes.get_errno())
"""
CALLS = {  # numbers on x86-64 and arm64
    "mkdirat": (258, 34),
    "linkat": (265, 37),
    "fsync": (74, 82),
    "renameat": (264, 38),
}


def call_number(name: str) -> str:
    machines = ("x86_64", "aarch64")
    if os.uname().machine not in machines:
        pytest.skip(f"USED-UP QUOTA NOT TESTED: no system call numbers for {os.uname().machine}")
    return str(CALLS[name][machines.index(os.uname().machine)])


@pytest.mark.parametrize("name", CALLS)
def test_a_quota_that_is_used_up_at_any_call_fails_and_leaves_nothing(
    place: World, ask: Keeper, name: str, as_owner: AsOwner
) -> None:
    small_checkpoint(place)
    ask(place.ask("pin"))
    ask(place.ask("drop"))

    code, said = as_owner(place.ask("pin"), FAIL_CALL, call_number(name))

    answer = json.loads(said)
    assert (code, answer["kind"]) == (0, "failed")
    assert answer["why"].startswith("Disk quota exceeded")
    assert list(place.home.iterdir()) == []
    assert ask(place.ask("pin"))["ok"]


def test_a_quota_that_is_used_up_while_publishing_keeps_the_best_that_was(
    place: World, ask: Keeper, as_owner: AsOwner
) -> None:
    for step in (200, 300):
        small_checkpoint(place, step)
        ask(place.ask("pin", step))
    ask(place.ask("publish", 200))

    _, said = as_owner(place.ask("publish", 300), FAIL_CALL, call_number("renameat"))

    assert json.loads(said)["kind"] == "failed"
    assert os.readlink(place.home / "best") == "step-200"
    assert ask(place.ask("publish", 300))["ok"]


@pytest.fixture
def limited(place: World) -> Iterator[Path]:
    """Make alice's folder a btrfs with a quota of 2 MiB, her output_dir a tmpfs, so that pins are copies."""
    if not all(map(shutil.which, ("mkfs.btrfs", "btrfs"))):
        pytest.skip("REAL QUOTA NOT TESTED: no mkfs.btrfs (Debian package btrfs-progs)")
    alice, image = place.root / "alice", place.root / "image"
    with image.open("wb") as file:
        file.truncate(256 * 1024**2)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, capture_output=True)
    with mounted("btrfs", "loop", alice, str(image)):
        subprocess.run(["btrfs", "quota", "enable", str(alice)], check=True, capture_output=True)
        subprocess.run(["btrfs", "qgroup", "limit", "2M", "0/5", str(alice)], check=True, capture_output=True)
        place.run.mkdir()
        with mounted("tmpfs", "size=32m", place.run):
            give(alice, place.alice)
            yield alice


def test_a_real_quota_that_is_used_up_fails_and_leaves_nothing(place: World, ask: Keeper, limited: Path) -> None:
    folder = small_checkpoint(place)
    (folder / "large.bin").write_bytes(os.urandom(8 * 1024**2))
    give(folder, place.alice)

    answer = ask(place.ask("pin"))

    assert (answer["kind"], answer["why"][:19]) == ("failed", "Disk quota exceeded")
    assert list(place.home.iterdir()) == []
    (folder / "large.bin").unlink()
    assert ask(place.ask("pin"))["files"] == 4


@pytest.fixture
def quick(place: World) -> Iterator[World]:
    """Give alice's folder to a tmpfs: files of any size, made at once."""
    with mounted("tmpfs", "size=64m,nr_inodes=50000,mode=0755", place.root / "alice"):
        place.run.mkdir()
        give(place.root / "alice", place.alice)
        yield place


@pytest.mark.timed
def test_a_sparse_file_of_exabytes_is_refused_at_once(quick: World, ask: Keeper) -> None:
    folder = small_checkpoint(quick)
    for name in ("giant.bin", "giant.safetensors", "trainer_state.json", "optimizer.pt"):
        with (folder / name).open("ab") as file:
            file.truncate(4 * 1024**6)
    give(folder, quick.alice)
    start = time.monotonic()

    answer = ask(quick.ask("pin"))

    assert (answer["kind"], "bytes" in answer["why"]) == ("refused", True)
    assert time.monotonic() - start < 5
    assert not quick.home.exists()


def test_a_sparse_file_within_the_limit_of_bytes_is_linked_and_not_read(quick: World, ask: Keeper) -> None:
    """30 TiB of nothing: no time to read it, no need to."""
    folder = small_checkpoint(quick)
    with (folder / "giant.bin").open("ab") as file:
        file.truncate(30 * 1024**4)
    give(folder, quick.alice)

    answer = ask(quick.ask("pin"))

    assert answer.get("bytes", 0) > 30 * 1024**4, answer
    assert ask(quick.ask("verify")) == answer


def test_a_sparse_file_that_must_be_copied_fails_where_there_is_no_room(place: World) -> None:
    """A copy is not sparse: it ends where the disk is full or the time is over, and leaves nothing."""
    with mounted("tmpfs", "size=4m,mode=0755", place.root / "alice"):
        place.run.mkdir()
        with mounted("tmpfs", "size=4m", place.run), keeper(place.root, "--time-limit-s", "20") as ask:
            folder = small_checkpoint(place)
            with (folder / "giant.bin").open("ab") as file:
                file.truncate(1024**4)
            give(place.root / "alice", place.alice)

            answer = ask(place.ask("pin"))

            assert (answer["kind"], answer["why"][:23]) == ("failed", "No space left on device")
            assert list(place.home.iterdir()) == []


def test_thousands_of_files_are_pinned_whole_within_the_time_limit(quick: World, ask: Keeper) -> None:
    folder = quick.run / "checkpoint-200"
    write_checkpoint(folder)
    for number in range(10_000):
        sub = folder / f"rank-{number % 50}"
        sub.mkdir(exist_ok=True)
        (sub / f"{number}.txt").write_text("x")
    give(folder, quick.alice)

    answer = ask(quick.ask("pin"))

    assert answer.get("files") == 10_041, answer
    assert sum(path.is_file() for path in (quick.home / "step-200").rglob("*")) == 10_041
    assert ask(quick.ask("verify")) == answer
    assert ask(quick.ask("drop"))["files"] == 10_041
    assert list(quick.home.iterdir()) == []


@pytest.mark.slow
def test_a_header_that_would_take_all_memory_ends_its_child_alone(place: World, ask: Keeper) -> None:
    folder = small_checkpoint(place)
    header = b'{"a": [' + (b"[" * 800 + b"]" * 800 + b",") * 15_000 + b"0]}"
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    give(folder, place.alice)

    assert ask(place.ask("pin"))["kind"] == "failed"
    assert list(place.home.iterdir()) == []
    assert ask(place.ask("drop"))["ok"]
