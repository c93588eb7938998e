"""What a hostile owner, or a stranger's files, may put in the way: each is refused and nothing is pinned."""

import json
import os
import pickle
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.keeper.world import PYTHON, Keeper, World, give, keeper, world, zipped

pytestmark = pytest.mark.root


def refused(ask: Keeper, request: dict[str, object]) -> str:
    answer = ask(request)
    assert answer.get("kind") == "refused", answer
    return str(answer["why"])


def nothing_pinned(place: World) -> bool:
    return not list(place.root.rglob("step-200"))


def swap_for_link(path: Path, place: World) -> None:
    """Put the real thing elsewhere (of alice's) and a link in its place."""
    real = place.root / "alice" / f"real-{path.name}"
    path.rename(real)
    path.symlink_to(real)
    os.chown(path, place.alice.pw_uid, place.alice.pw_gid, follow_symlinks=False)


@pytest.mark.parametrize(
    "level",
    ["run", "run/checkpoint-200", "run/checkpoint-200/global_step", "run/checkpoint-200/optimizer.pt"],
)
def test_a_symbolic_link_at_any_level_is_refused(place: World, ask: Keeper, level: str) -> None:
    place.save()
    swap_for_link(place.root / "alice" / level, place)

    assert "link" in refused(ask, place.ask("pin"))
    assert nothing_pinned(place)


def test_a_symbolic_link_far_above_is_refused_and_the_reason_names_it(place: World, ask: Keeper) -> None:
    place.save()
    (place.root / "short").symlink_to(place.root / "alice")

    why = refused(ask, place.ask("pin", output_dir=str(place.root / "short/run")))

    assert "symbolic link" in why
    assert "short" in why


@pytest.mark.parametrize("level", [".evalstop", ".evalstop/c-7-100"])
def test_a_link_where_pins_belong_is_refused_for_every_verb(place: World, ask: Keeper, level: str) -> None:
    place.save()
    ask(place.ask("pin"))
    swap_for_link(place.root / "alice" / level, place)

    for verb in ("pin", "verify", "publish", "drop"):
        assert "link" in refused(ask, place.ask(verb))


@pytest.mark.parametrize("name", ["step-200", "step-200.json"])
def test_a_link_in_place_of_the_pin_or_its_manifest_is_refused(place: World, ask: Keeper, name: str) -> None:
    place.save()
    ask(place.ask("pin"))
    swap_for_link(place.home / name, place)

    for verb in ("pin", "verify", "publish"):
        refused(ask, place.ask(verb))
    ask(place.ask("drop"))  # may remove the link, never what it leads to
    real = place.root / "alice" / f"real-{name}"
    assert real.is_file() or len(list(real.iterdir())) == 41


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    os.mknod(path, 0o20600, os.makedev(1, 5))


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


@pytest.mark.parametrize("make", [make_pipe, make_device, make_socket])
@pytest.mark.parametrize("name", ["x.bin", "global_step/x.bin"])
def test_anything_but_regular_files_is_refused_without_waiting(
    place: World, make: Callable[[Path], None], name: str
) -> None:
    """A FIFO with nobody at its other end must not hang the keeper."""
    make(place.save() / name)
    give(place.run, place.alice)

    with keeper(place.root, "--time-limit-s", "5") as ask:
        assert "pipe or a device" in refused(ask, place.ask("pin"))
    assert nothing_pinned(place)


def test_a_pipe_in_place_of_the_manifest_is_refused_without_waiting(place: World, ask: Keeper) -> None:
    place.save()
    ask(place.ask("pin"))
    (place.home / "step-200.json").unlink()
    os.mkfifo(place.home / "step-200.json")
    give(place.home, place.alice)

    refused(ask, place.ask("verify"))


def test_a_hard_link_to_anothers_file_is_refused(place: World, ask: Keeper) -> None:
    secret = place.root / "bob/secret.bin"
    secret.write_text("bob's")
    give(secret, place.bob)
    os.link(secret, place.save() / "secret.bin")

    assert "not the owner's: secret.bin" in refused(ask, place.ask("pin"))
    assert secret.stat().st_nlink == 2


def test_another_users_folders_are_refused(place: World, ask: Keeper) -> None:
    place.save()

    refused(ask, place.ask("pin", uid=place.bob.pw_uid))
    place.root.joinpath("alice").chmod(0o700)
    refused(ask, place.ask("pin", uid=place.bob.pw_uid))
    assert nothing_pinned(place)


def test_a_subfolder_of_another_user_is_refused(place: World, ask: Keeper) -> None:
    os.chown(place.save() / "global_step", place.bob.pw_uid, place.bob.pw_gid)

    assert "not the owner's: global_step" in refused(ask, place.ask("pin"))


def test_a_checkpoint_of_root_in_the_owners_folder_is_refused(place: World, ask: Keeper) -> None:
    os.chown(place.save(), 0, 0)

    refused(ask, place.ask("pin"))


@pytest.mark.parametrize(
    "field",
    [
        {"output_dir": "{run}/../run"},
        {"output_dir": "{run}/."},
        {"output_dir": "{run}/"},
        {"output_dir": "/{run}"},
        {"output_dir": "alice/run"},
        {"output_dir": "/"},
        {"output_dir": ""},
        {"output_dir": "{run}\nx"},
        {"output_dir": "{run}\x00"},
        {"output_dir": "{run}\x1b[2J"},
        {"output_dir": "{run}\u202e"},
        {"output_dir": "{run}\ud800"},
        {"output_dir": "/" + "x" * 5000},
        {"output_dir": ["{run}"]},
        {"output_dir": None},
        {"checkpoint": "checkpoint-200"},
        {"pin": ".hidden"},
        {"pin": ".."},
        {"pin": "a/b"},
        {"pin": "a b"},
        {"pin": "a\n"},
        {"pin": ""},
        {"pin": "x" * 201},
        {"step": -1},
        {"step": 1.0},
        {"step": "200"},
        {"step": True},
        {"step": 10**15},
        {"step": None},
        {"since_s": -1},
        {"since_s": 1.0},
        {"later": 2},
        {"later": True},
        {"metric": "x" * 251},
        {"metric": "eval\n"},
        {"metric": None},
        {"score": 1},
        {"score": "1.0"},
        {"score": float("nan")},
        {"score": float("inf")},
        {"uid": -1},
        {"uid": 0},
        {"uid": 1},
        {"uid": True},
        {"uid": "{uid}"},
        {"uid": 2**32 + 1000},
        {"uid": 2**32 - 1},
        {"uid": 3_999_999_999},
        {"verb": "PIN"},
        {"verb": ["pin"]},
        {"verb": None},
        {"verb": "__init__"},
        {"extra": 1},
    ],
    ids=str,
)
def test_malformed_fields_are_refused(place: World, ask: Keeper, field: dict[str, object]) -> None:
    place.save()
    known = {"{run}": str(place.run), "{uid}": str(place.alice.pw_uid)}
    text = json.dumps(field)
    for word, meaning in known.items():
        text = text.replace(word, meaning)

    refused(ask, place.ask("pin") | json.loads(text))
    assert nothing_pinned(place)


@pytest.mark.parametrize("name", ["verb", "uid", "output_dir", "pin", "step", "since_s", "metric", "score", "later"])
def test_each_field_is_needed(place: World, ask: Keeper, name: str) -> None:
    request = place.ask("pin")
    del request[name]

    assert name in refused(ask, request) or name == "verb"


def test_only_pin_takes_what_a_checkpoint_is_told_by(place: World, ask: Keeper) -> None:
    assert "since_s" in refused(ask, place.ask("verify", since_s=0))


def test_names_with_any_bytes_inside_a_checkpoint_are_pinned(place: World, ask: Keeper) -> None:
    folder = place.save()
    for name in (b"new\nline", b"\xff\xfe", b"esc\x1b[2J", "é".encode()):
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_text("x")
    give(folder, place.alice)

    assert ask(place.ask("pin"))["files"] == 45
    assert ask(place.ask("verify"))["files"] == 45


def test_a_reason_with_hostile_names_is_one_printable_line(place: World, ask: Keeper) -> None:
    """The helper's own check of each answer's form does the judging."""
    os.mkfifo(os.fsencode(place.save()) + b"/\xff\n\x1b[2J\r evil")
    give(place.run, place.alice)

    assert "?" in refused(ask, place.ask("pin"))


def test_a_sparse_giant_counts_by_its_size(place: World, ask: Keeper) -> None:
    """ext4 stops at 16 TiB, so several make up the exabytes."""
    folder = place.save()
    for number in range(3):
        with open(folder / f"giant-{number}.bin", "wb") as file:
            file.truncate(15 * 1024**4)
    give(folder, place.alice)

    assert "bytes" in refused(ask, place.ask("pin"))
    assert nothing_pinned(place)


def test_too_many_files_are_refused(place: World) -> None:
    place.save()
    with keeper(place.root, "--max-files", "40") as ask:
        assert "40 files" in refused(ask, place.ask("pin"))
    with keeper(place.root, "--max-files", "41") as ask:
        assert ask(place.ask("pin"))["ok"]


def test_too_many_bytes_are_refused(place: World) -> None:
    size = sum(path.stat().st_size for path in place.save().rglob("*") if path.is_file())
    with keeper(place.root, "--max-bytes", str(size - 1)) as ask:
        assert "bytes" in refused(ask, place.ask("pin"))
    with keeper(place.root, "--max-bytes", str(size)) as ask:
        assert ask(place.ask("pin"))["ok"]


def test_folders_nested_too_deep_are_refused(place: World, ask: Keeper) -> None:
    folder = place.save()
    folder.joinpath(*"abcdefgh").mkdir(parents=True)
    give(folder, place.alice)
    assert ask(place.ask("pin"))["ok"]

    place.save(300).joinpath(*"abcdefghi").mkdir(parents=True)
    give(place.run, place.alice)
    assert "deeper" in refused(ask, place.ask("pin", 300))


def test_a_planted_draft_cannot_lead_the_clean_up_elsewhere(place: World, ask: Keeper) -> None:
    """A link named like a killed child's draft is removed as a link; what it points to stays."""
    place.save()
    keepsake = place.root / "alice/keepsake"
    keepsake.mkdir()
    (keepsake / "file").write_text("x")
    place.home.mkdir(parents=True)
    (place.home / ".tmp-step-200").symlink_to(keepsake)
    give(place.root / "alice", place.alice)

    assert ask(place.ask("pin"))["ok"]
    assert (keepsake / "file").read_text() == "x"


def test_a_place_for_pins_that_belongs_to_another_is_refused(place: World, ask: Keeper) -> None:
    place.save()
    place.home.parent.mkdir()
    give(place.home.parent, place.bob)
    place.home.parent.chmod(0o777)

    assert "not the owner's: .evalstop" in refused(ask, place.ask("pin"))


@pytest.fixture(scope="module")
def group_place() -> Iterator[World]:
    with world() as made:
        yield made
        shutil.rmtree(made.root / "shared", ignore_errors=True)


def test_the_owners_groups_reach_shared_folders(group_place: World) -> None:
    """A run below a folder that only a group may pass is reached with the owner's groups, by nobody else."""
    shared = group_place.root / "shared"
    (shared / "run").mkdir(parents=True)
    write = shared / "run"
    give(write, group_place.alice)
    os.chown(shared, 0, group_place.alice.pw_gid)
    shared.chmod(0o710)
    shutil.copytree(group_place.save(), write / "checkpoint-200")
    give(write, group_place.alice)

    with keeper(group_place.root) as ask:
        assert ask(group_place.ask("pin", output_dir=str(write)))["ok"]
        refused(ask, group_place.ask("pin", output_dir=str(write), uid=group_place.bob.pw_uid))


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, int]]:
        return os.open, (str(self.path), os.O_CREAT | os.O_WRONLY)


def test_nothing_is_ever_unpickled(place: World, ask: Keeper) -> None:
    """A pickle that acts when loaded, wherever trainers put one: raw, in a zip, under each name that is looked into."""
    trace, folder = place.root / "alice/trace", place.save()
    bomb = pickle.dumps(Bomb(trace))
    for name in ("optimizer.pt", "x.pth", "x.bin", "x.ckpt", "raw.pkl", "raw.pickle", "training_args.bin"):
        (folder / name).write_bytes(bomb)
    for name in ("zip.pt", "pytorch_model.bin"):
        (folder / name).write_bytes(zipped(bomb))
    give(folder, place.alice)

    assert ask(place.ask("pin"))["ok"]
    assert ask(place.ask("publish"))["ok"]
    for step, name in enumerate(("trainer_state.json", "model.safetensors.index.json", "model-00003.safetensors"), 300):
        (place.save(step) / name).write_bytes(bomb)
        assert ask(place.ask("pin", step))["kind"] == "incomplete"
    assert ask(place.ask("drop"))["ok"]
    assert not trace.exists()
    os.close(pickle.loads(bomb))
    assert trace.exists(), "the pickle is live"


def test_whatever_protected_hardlinks_says_a_link_to_anothers_file_is_never_pinned(place: World, ask: Keeper) -> None:
    """At 1 the kernel forbids alice the link (root makes it then); at 0 she may, and the keeper refuses it."""
    folder, secret = place.save(), place.root / "bob/secret.bin"
    secret.write_text("bob's")
    give(secret, place.bob)
    protected = Path("/proc/sys/fs/protected_hardlinks").read_text().strip() == "1"
    link = [PYTHON, "-c", "import os, sys; os.link(sys.argv[1], sys.argv[2])", str(secret), str(folder / "secret.bin")]
    ended = subprocess.run(link, user=place.alice.pw_uid, group=place.alice.pw_gid, extra_groups=[], check=False)
    assert (ended.returncode != 0) == protected
    if protected:
        os.link(secret, folder / "secret.bin")

    assert "not the owner's: secret.bin" in refused(ask, place.ask("pin"))
    assert secret.stat().st_nlink == 2
    assert nothing_pinned(place)
