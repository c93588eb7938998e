"""Other file systems: a pin that must be copied, a disk that is full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.keeper.world import Keeper, World, give, write_checkpoint
from tests.keeper.world import mounted as on_file_system

pytestmark = pytest.mark.root


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs"])
def test_pins_are_made_and_dropped_on_each_local_file_system(place: World, ask: Keeper, kind: str) -> None:
    """They differ in what a folder that is open shows of what was made since."""
    if shutil.which(f"mkfs.{kind}") is None:
        pytest.skip(f"NOT TESTED ON {kind.upper()}: no mkfs.{kind}")
    alice, image = place.root / "alice", place.root / "image"
    with image.open("wb") as file:
        file.truncate(400 * 1024**2)
    subprocess.run([f"mkfs.{kind}", "-q", str(image)], check=True, capture_output=True)
    with on_file_system(kind, "loop", alice, str(image)):
        place.save()
        give(alice, place.alice)

        assert ask(place.ask("pin")).get("files") == 41
        assert ask(place.ask("publish"))["ok"]
        assert ask(place.ask("drop"))["files"] == 41
        assert list(place.home.iterdir()) == []


@pytest.fixture
def mounted(place: World) -> Iterator[Path]:
    """Make alice's output_dir a tmpfs of its own, so that pins beside it lie on another device."""
    command = ["mount", "-t", "tmpfs", "-o", "size=400k,mode=0755", "tmpfs", str(place.run)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        pytest.skip(f"DISK-FULL AND COPY NOT TESTED: cannot mount here: {ended.stderr}")
    give(place.run, place.alice)
    yield place.run
    subprocess.run(["umount", str(place.run)], check=True)


def test_across_devices_a_pin_is_a_copy(place: World, ask: Keeper, mounted: Path) -> None:
    source = place.save()

    answer = ask(place.ask("pin"))

    assert (answer.get("path"), answer.get("files")) == (str(place.home / "step-200"), 41), answer
    for path in source.rglob("*"):
        if path.is_file():
            copy = place.home / "step-200" / path.relative_to(source)
            assert copy.read_bytes() == path.read_bytes()
            assert (copy.stat().st_nlink, copy.stat().st_uid) == (1, place.alice.pw_uid)
    shutil.rmtree(source)
    assert ask(place.ask("verify")) == ask(place.ask("pin")) == answer


def test_a_copy_of_half_a_checkpoint_is_incomplete(place: World, ask: Keeper, mounted: Path) -> None:
    (place.save() / "trainer_state.json").unlink()

    assert ask(place.ask("pin"))["kind"] == "incomplete"
    assert list(place.home.iterdir()) == []


def test_a_full_disk_fails_and_leaves_nothing(place: World, ask: Keeper, mounted: Path) -> None:
    """Here pins lie on the small tmpfs (alice's run is below it), the checkpoint on a mount of its own."""
    run = mounted / "run"
    (run / "checkpoint-200").mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(run)]
    subprocess.run(command, check=True)
    try:
        write_checkpoint(run / "checkpoint-200")
        (run / "checkpoint-200/large.bin").write_bytes(os.urandom(1_000_000))
        give(mounted, place.alice)

        answer = ask(place.ask("pin", output_dir=str(run)))

        assert (answer["kind"], answer["why"][:23]) == ("failed", "No space left on device")
        assert list((mounted / ".evalstop/c-7-100").iterdir()) == []
        assert ask(place.ask("drop", output_dir=str(run)))["ok"]
    finally:
        subprocess.run(["umount", str(run)], check=True)
