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


Writes = list[tuple[str, bytes]]
FOLDER = "epoch=1-step=201.ckpt"


def never_before_its_end(place: World, ask: Keeper, writes: Writes, **asked: object) -> None:
    """Let a trainer write one thing after the other: nothing is pinned until the last of them is there."""
    for path, content in writes:
        answer = ask(place.ask("pin", **asked))
        assert (answer["ok"], answer.get("kind") in {"missing", "incomplete"}) == (False, True), (path, answer)
        assert not place.home.exists() or list(place.home.iterdir()) == []
        write(place, path, content)
    answer = ask(place.ask("pin", **asked))
    assert answer["ok"], answer
    assert set(pinned(place)) == {path.partition("/")[2] for path, _ in writes if path.startswith((FOLDER, "global"))}
    assert ask(place.ask("verify"))["ok"]
    assert ask(place.ask("publish"))["ok"]


def halves(path: str, content: bytes) -> Writes:
    """Return the writes of a file that grows: its opening, a half, the whole."""
    return [(path, b""), (path, content[: len(content) // 2]), (path, content)]


def test_lightnings_sharded_folder_is_pinned_once_its_last_file_is_whole(place: World, ask: Keeper) -> None:
    """FSDP and model parallel, two processes: shards side by side, torch's index by renaming, Lightning's own last."""
    shards = [halves(f"{FOLDER}/__{rank}_0.distcp", zipped(b"shard" * 100)) for rank in (0, 1)]
    side_by_side = [each for pair in zip(*shards, strict=True) for each in pair]
    index = [(f"{FOLDER}/.metadata", b"an index that a renaming put there")]
    never_before_its_end(place, ask, [*side_by_side, *index, *halves(f"{FOLDER}/meta.pt", zipped(b"loops"))])


def test_a_sharded_folder_whose_shards_are_written_anew_is_incomplete_until_its_last_file_is(
    place: World, ask: Keeper
) -> None:
    """Lightning without its version counter writes over a folder of that name."""
    for name in ("__0_0.distcp", "__1_0.distcp", ".metadata"):
        write(place, f"{FOLDER}/{name}", b"old", 1_000)
    write(place, f"{FOLDER}/meta.pt", zipped(b"old"), 1_001)
    write(place, f"{FOLDER}/__0_0.distcp", b"new", 2_000)
    assert ask(place.ask("pin"))["kind"] == "incomplete"
    write(place, f"{FOLDER}/meta.pt", zipped(b"new"), 2_001)
    assert ask(place.ask("pin"))["ok"]


def test_clocks_of_nodes_that_differ_a_little_cost_no_sharded_folder(place: World, ask: Keeper) -> None:
    write(place, f"{FOLDER}/__1_0.distcp", b"by a node whose clock is ahead", 1_001)
    write(place, f"{FOLDER}/.metadata", b"index", 1_000)
    write(place, f"{FOLDER}/meta.pt", zipped(b"loops"), 1_000)
    assert ask(place.ask("pin"))["ok"]


def deepspeed() -> Writes:
    """Return what two processes write for Lightning: rank 0 is done, and says `latest`, before rank 1 is."""
    states, second = f"{FOLDER}/checkpoint", zipped(b"optimizer of rank 1" * 100)
    slow = f"{states}/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
    return [
        *halves(f"{states}/mp_rank_00_model_states.pt", zipped(b"weights" * 100)),
        (slow, b""),
        (f"{states}/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", zipped(b"optimizer of rank 0")),
        (f"{FOLDER}/zero_to_fp32.py", b"# a script that DeepSpeed puts there"),
        (f"{FOLDER}/latest", b"checkpoint"),
        (slow, second[:-30]),
        (slow, second),
    ]


def test_deepspeeds_folder_is_pinned_once_a_later_eval_shows_that_all_processes_are_done(
    place: World, ask: Keeper
) -> None:
    """All wait for each other after the last shard, so that who evaluates anew has left nobody writing."""
    for path, content in deepspeed():
        write(place, path, content)
        assert ask(place.ask("pin"))["kind"] == "incomplete", path
    assert ask(place.ask("pin", later=1))["ok"]
    assert "checkpoint/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt" in pinned(place)


def test_even_a_later_eval_makes_no_half_shard_of_deepspeeds_whole(place: World, ask: Keeper) -> None:
    never_before_its_end(place, ask, deepspeed(), later=1)


@pytest.mark.parametrize("names", [[], ["latest"], ["weights.pt"], ["meta.pt"], ["__0_0.distcp", ".metadata"]])
def test_a_folder_of_lightnings_name_without_a_last_word_we_know_is_incomplete(
    place: World, ask: Keeper, names: list[str]
) -> None:
    (place.run / FOLDER).mkdir()
    give(place.run, place.alice)
    for name in names:
        write(place, f"{FOLDER}/{name}", zipped(b"x"))
    assert ask(place.ask("pin", later=1))["kind"] == "incomplete"


def test_a_sharded_folder_of_an_earlier_training_is_another_one(place: World, ask: Keeper) -> None:
    for name in ("__0_0.distcp", ".metadata"):
        write(place, f"{FOLDER}/{name}", b"x", 1_000)
    write(place, f"{FOLDER}/meta.pt", zipped(b"loops"), 1_000)
    assert ask(place.ask("pin", since_s=1_001))["kind"] == "incomplete"
    assert ask(place.ask("pin", since_s=1_000))["ok"]


def test_verls_folder_is_never_pinned_before_verl_says_so(place: World, ask: Keeper) -> None:
    """In the order of its trainer: each role's shards, rank by rank, then the data loader's state, the tracker last."""
    actor = "global_step_200/actor"
    ranks = [
        (f"{actor}/{kind}_world_size_2_rank_{rank}.pt", zipped(b"shard" * 50))
        for rank in (0, 1)
        for kind in ("model", "optim", "extra_state")
    ]
    rest = [(f"{actor}/huggingface/config.json", b"{}"), ("global_step_200/data.pt", zipped(b"loader"))]
    first = [("latest_checkpointed_iteration.txt", b"100"), *halves(*ranks[0]), *ranks[1:], *rest]
    never_before_its_end(place, ask, [*first, ("latest_checkpointed_iteration.txt", b"200")])
