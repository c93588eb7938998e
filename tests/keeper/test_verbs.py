"""Pin, verify, publish and drop as they are meant to go."""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable

import pytest

from tests.keeper.world import Keeper, World

pytestmark = pytest.mark.root


def manifest_of(folder: str) -> str:
    rows = []
    for top, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(top, name)
            status = os.lstat(path)
            rows.append([os.path.relpath(path, folder), status.st_size, status.st_mtime_ns, status.st_ino])
    return hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()


def test_a_pin_holds_every_file_as_a_hard_link(place: World, ask: Keeper) -> None:
    source = place.save()

    answer = ask(place.ask("pin"))

    pinned = place.home / "step-200"
    names = sorted(str(path.relative_to(source)) for path in source.rglob("*"))
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    assert answer["ok"], answer
    assert (str(pinned), 41, size) == (answer["path"], answer["files"], answer["bytes"])
    assert answer["manifest"] == manifest_of(answer["path"]) == manifest_of(str(source))
    assert names == sorted(str(path.relative_to(pinned)) for path in pinned.rglob("*"))


def test_pins_are_the_owners_and_closed_while_files_keep_their_modes(place: World, ask: Keeper) -> None:
    (place.save() / "optimizer.pt").chmod(0o640)

    ask(place.ask("pin"))

    pinned = place.home / "step-200"
    folders = (place.home.parent, place.home, pinned, pinned / "global_step")
    assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == [0o700, 0o700, 0o500, 0o500]
    assert stat.S_IMODE((pinned / "optimizer.pt").stat().st_mode) == 0o640
    assert {path.stat().st_uid for path in place.home.rglob("*")} == {place.alice.pw_uid}
    assert sorted(path.name for path in place.home.iterdir()) == ["step-200", "step-200.json"]


def test_pinning_again_gives_the_same_pin(place: World, ask: Keeper) -> None:
    source = place.save()

    first = ask(place.ask("pin"))
    inode = (place.home / "step-200").stat().st_ino
    shutil.rmtree(source)

    assert first == ask(place.ask("pin"))
    assert inode == (place.home / "step-200").stat().st_ino


def test_a_pin_outlives_rotation(place: World, ask: Keeper) -> None:
    source = place.save()
    pinned = ask(place.ask("pin"))

    shutil.rmtree(source)

    assert pinned == ask(place.ask("verify"))


def test_publish_moves_best_from_step_to_step(place: World, ask: Keeper) -> None:
    for step in (200, 300):
        place.save(step)
        pinned = ask(place.ask("pin", step))

        answer = ask(place.ask("publish", step))

        assert answer == pinned | {"path": str(place.home / "best")}
        assert os.readlink(place.home / "best") == f"step-{step}"
        assert (place.home / "best/trainer_state.json").is_file()


def test_publish_takes_over_what_a_killed_publish_left(place: World, ask: Keeper) -> None:
    place.save()
    ask(place.ask("pin"))
    (place.home / ".tmp-best").symlink_to("elsewhere")

    assert ask(place.ask("publish"))["ok"]
    assert os.readlink(place.home / "best") == "step-200"


def test_drop_removes_pin_manifest_and_its_own_best(place: World, ask: Keeper) -> None:
    for step in (200, 300):
        place.save(step)
    ask(place.ask("pin", 200))
    pinned = ask(place.ask("pin", 300))
    ask(place.ask("publish", 300))

    dropped = ask(place.ask("drop", 200))

    assert (dropped["ok"], dropped["files"]) == (True, 41)
    assert sorted(path.name for path in place.home.iterdir()) == ["best", "step-300", "step-300.json"]
    assert ask(place.ask("drop", 300)) == pinned
    assert list(place.home.iterdir()) == []
    assert (place.run / "checkpoint-300/trainer_state.json").is_file()


def test_dropping_what_is_not_there_is_fine(place: World, ask: Keeper) -> None:
    assert ask(place.ask("drop"))["files"] == 0

    place.save()
    ask(place.ask("pin"))

    assert (ask(place.ask("drop", 999))["ok"], ask(place.ask("drop", 999))["files"]) == (True, 0)
    assert ask(place.ask("verify"))["ok"]


def test_drop_leaves_a_folder_that_has_no_manifest(place: World, ask: Keeper) -> None:
    place.save()
    ask(place.ask("pin"))
    (place.home / "step-200.json").unlink()

    assert ask(place.ask("drop"))["kind"] == "changed"
    assert (place.home / "step-200/trainer_state.json").is_file()


@pytest.mark.parametrize("verb", ["verify", "publish"])
def test_without_a_pin_there_is_nothing_to_verify_or_publish(place: World, ask: Keeper, verb: str) -> None:
    assert ask(place.ask(verb))["kind"] == "missing"

    place.save()
    ask(place.ask("pin"))

    assert ask(place.ask(verb, 300))["kind"] == "missing"


def test_pins_lie_in_the_output_folder_if_the_one_above_is_not_the_owners(place: World, ask: Keeper) -> None:
    place.save()
    os.chown(place.run.parent, 0, 0)

    answer = ask(place.ask("pin"))

    assert answer["path"] == str(place.run / ".evalstop/c-7-100/step-200")
    assert ask(place.ask("drop"))["files"] == 41


def test_a_missing_checkpoint_leaves_no_trace(place: World, ask: Keeper) -> None:
    assert ask(place.ask("pin"))["kind"] == "missing"
    assert ask(place.ask("pin", output_dir=str(place.run / "none")))["kind"] == "missing"
    assert not place.home.parent.exists()


def truncate(place: World) -> None:
    os.truncate(place.home / "step-200/model-00007.safetensors", 10)


def rewrite(place: World) -> None:
    with open(place.home / "step-200/scheduler.pt", "r+b") as file:
        file.write(b"\x81")


def add(place: World) -> None:
    (place.home / "step-200/extra.bin").write_bytes(b"x")
    os.chown(place.home / "step-200/extra.bin", place.alice.pw_uid, place.alice.pw_gid)


def replace(place: World) -> None:
    path = place.home / "step-200/scheduler.pt"
    before, content = path.stat(), path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.chown(path, before.st_uid, before.st_gid)


def remove(place: World) -> None:
    (place.home / "step-200/scheduler.pt").unlink()


def spoil_manifest(place: World) -> None:
    (place.home / "step-200.json").write_text("[[1]]")


def break_unseen(place: World) -> None:
    path = place.home / "step-200/optimizer.pt"
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(b"moments", b"monents", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("damage", [truncate, rewrite, add, replace, remove, spoil_manifest, break_unseen])
def test_a_damaged_pin_is_changed_and_never_published(
    place: World, ask: Keeper, damage: Callable[[World], None]
) -> None:
    place.save()
    ask(place.ask("pin"))

    damage(place)

    for verb in ("verify", "publish", "pin"):
        assert ask(place.ask(verb))["kind"] == "changed"
    assert not (place.home / "best").is_symlink()


def test_a_changed_pin_can_be_dropped_and_made_anew(place: World, ask: Keeper) -> None:
    place.save()
    ask(place.ask("pin"))
    truncate(place)
    shutil.rmtree(place.run / "checkpoint-200")
    place.save()

    assert ask(place.ask("drop"))["ok"]
    assert ask(place.ask("pin"))["files"] == 41
