"""Checkpoints in the layouts of other trainers than Hugging Face's: found by step, whole by what each writes last."""

import os
from pathlib import Path

import pytest

from tests.keeper.world import Keeper, World, give, safetensors, write_checkpoint, zipped

pytestmark = pytest.mark.root


def write(place: World, name: str, content: bytes, at_s: int | None = None) -> Path:
    """Let alice's trainer write one file below its folder."""
    path = place.run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    give(place.run, place.alice)
    if at_s is not None:
        os.utime(path, (at_s, at_s))
    return path


def pinned(place: World, step: int = 200) -> list[str]:
    folder = place.home / f"step-{step}"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "name",
    [
        "epoch=1-step=201.ckpt",
        "epoch=1-step=201-v1.ckpt",
        "best-epoch=1-step=201-val_acc=0.830.ckpt",
        "epoch=1-step=200.ckpt",
        "step_000200.pt",
        "step-200.pth",
        "model_step200.ckpt",
        "ckpt.step=200.pt",
    ],
)
def test_a_single_file_is_found_by_the_step_in_its_name(place: World, ask: Keeper, name: str) -> None:
    """Lightning's `step=201` counts the steps done; its logger counts from 0, so it is the checkpoint of step 200."""
    source = write(place, name, zipped(b"weights" * 1000))
    write(place, "epoch=0-step=20.ckpt", zipped(b"others"))
    answer = ask(place.ask("pin"))
    assert answer["ok"], answer
    assert (answer["files"], pinned(place)) == (1, [name])
    assert (place.home / "step-200" / name).stat().st_ino == source.stat().st_ino
    source.unlink()
    assert ask(place.ask("verify"))["ok"]
    assert ask(place.ask("publish"))["ok"]
    assert ask(place.ask("drop"))["ok"]


@pytest.mark.parametrize(
    "name",
    [
        "epoch=200.ckpt",
        "last.ckpt",
        "step=2000.ckpt",
        "step=1200.ckpt",
        "step_201.pt",
        "step=201.pt",
        "val_step=3-step=200.ckpt",
        "footstep200.pt",
        "checkpoint-200.pt",
        "step=200.txt",
        "step=200.ckpt.tmp",
    ],
)
def test_a_file_that_does_not_say_that_it_is_the_steps_is_not_taken(place: World, ask: Keeper, name: str) -> None:
    """An epoch's number, a number within another, another step, two steps in one name."""
    write(place, name, zipped(b"weights"))
    answer = ask(place.ask("pin"))
    assert (answer["kind"], answer["why"]) == ("missing", "no checkpoint of step 200")


def test_of_several_files_lightnings_name_counts_first_then_the_newest(place: World, ask: Keeper) -> None:
    write(place, "epoch=1-step=200.ckpt", zipped(b"one step less"), 3_000)
    write(place, "epoch=1-step=201.ckpt", zipped(b"of an earlier fit"), 1_000)
    write(place, "epoch=1-step=201-v1.ckpt", zipped(b"the newest"), 2_000)
    assert ask(place.ask("pin"))["ok"]
    assert pinned(place) == ["epoch=1-step=201-v1.ckpt"]


@pytest.mark.parametrize("cut", [0, 3, 100, -1])
def test_a_file_that_is_still_being_copied_is_incomplete_and_then_pinned(place: World, ask: Keeper, cut: int) -> None:
    """Lightning writes elsewhere and moves: across file systems that is a copy, which grows under its final name."""
    whole = zipped(b"weights" * 1000)
    write(place, "epoch=1-step=201.ckpt", whole[:cut])
    assert ask(place.ask("pin"))["kind"] == "incomplete"
    assert list(place.home.iterdir()) == []
    write(place, "epoch=1-step=201.ckpt", whole)
    assert ask(place.ask("pin"))["ok"]


def test_a_lone_file_of_a_format_without_an_end_is_refused_and_a_safetensors_file_taken(
    place: World, ask: Keeper
) -> None:
    write(place, "step_200.pt", b"\x80\x02older pickle")
    answer = ask(place.ask("pin"))
    assert (answer["kind"], "nothing tells whether it is whole" in answer["why"]) == ("incomplete", True)
    (place.run / "step_200.pt").unlink()
    write(place, "step_200.safetensors", safetensors(1000)[:-1])
    assert ask(place.ask("pin"))["kind"] == "incomplete"
    write(place, "step_200.safetensors", safetensors(1000))
    assert ask(place.ask("pin"))["ok"]


def test_a_single_file_written_before_the_step_was_evaluated_is_another_one(place: World, ask: Keeper) -> None:
    write(place, "epoch=1-step=201.ckpt", zipped(b"of an earlier training"), 1_000)
    assert ask(place.ask("pin", since_s=1_001))["kind"] == "incomplete"
    assert ask(place.ask("pin", since_s=1_000))["ok"]


def test_a_link_or_a_folder_under_a_files_name_is_no_checkpoint(place: World, ask: Keeper) -> None:
    other = write(place, "elsewhere/secret.ckpt", zipped(b"x"))
    (place.run / "epoch=1-step=201.ckpt").symlink_to(other)
    (place.run / "step_200.pt").mkdir()
    give(place.run, place.alice)
    assert ask(place.ask("pin"))["kind"] == "missing"
    strangers = write(place, "step-200.pth", zipped(b"x"))
    give(strangers, place.bob)
    assert ask(place.ask("pin"))["kind"] == "refused"


def test_huggingfaces_folder_comes_before_a_file_beside_it(place: World, ask: Keeper) -> None:
    place.save()
    write(place, "step_200.pt", zipped(b"x"))
    assert ask(place.ask("pin"))["files"] == 41


def verl(place: World, step: int, at_s: int) -> None:
    """Write what verl writes: a folder for each role, the data loader's state, all at one time."""
    for name in ("actor/model_world_size_1_rank_0.pt", "actor/extra_state_world_size_1_rank_0.pt", "data.pt"):
        write(place, f"global_step_{step}/{name}", zipped(name.encode()), at_s)
    write(place, f"global_step_{step}/actor/huggingface/config.json", b"{}", at_s)


def test_verls_folder_is_whole_once_its_tracker_tells_of_the_step(place: World, ask: Keeper) -> None:
    verl(place, 200, 2_000)
    answer = ask(place.ask("pin"))
    assert (answer["kind"], answer["why"]) == ("incomplete", "a file vanished meanwhile")
    write(place, "latest_checkpointed_iteration.txt", b"100", 1_500)
    assert ask(place.ask("pin"))["kind"] == "incomplete"
    write(place, "latest_checkpointed_iteration.txt", b"200", 2_001)
    assert ask(place.ask("pin"))["ok"]
    assert "actor/model_world_size_1_rank_0.pt" in pinned(place)
    assert ask(place.ask("verify"))["ok"]


def test_an_older_training_s_tracker_does_not_vouch_for_a_checkpoint_that_is_written_anew(
    place: World, ask: Keeper
) -> None:
    write(place, "latest_checkpointed_iteration.txt", b"300", 1_000)
    verl(place, 200, 2_000)
    answer = ask(place.ask("pin"))
    assert answer["kind"] == "incomplete"
    assert "does not tell of step 200 yet" in answer["why"]


@pytest.mark.parametrize("text", [b"", b"two hundred", b"\xff", b"9" * 100])
def test_a_tracker_that_cannot_be_read_is_no_word_for_a_checkpoint(place: World, ask: Keeper, text: bytes) -> None:
    verl(place, 200, 2_000)
    write(place, "latest_checkpointed_iteration.txt", text, 2_001)
    answer = ask(place.ask("pin"))
    assert (answer["ok"], answer.get("kind")) == ((True, None) if text == b"9" * 100 else (False, "incomplete"))


def test_a_folder_without_any_trainers_last_word_is_never_taken(place: World, ask: Keeper) -> None:
    write_checkpoint(place.run / "step_000200")
    give(place.run, place.alice)
    assert ask(place.ask("pin"))["kind"] == "missing"


@pytest.mark.parametrize("name", ["checkpoint-200", "global_step_200"])
def test_a_folder_that_was_only_just_made_is_incomplete_not_a_failure(place: World, ask: Keeper, name: str) -> None:
    (place.run / name).mkdir()
    give(place.run, place.alice)
    write(place, "latest_checkpointed_iteration.txt", b"100")
    assert ask(place.ask("pin", since_s=1))["kind"] == "incomplete"
