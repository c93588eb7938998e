"""Half-written checkpoints: `incomplete`, nothing pinned, nothing left behind; once whole, pinned."""

import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.keeper.world import Keeper, World, give, safetensors, zipped

pytestmark = pytest.mark.root


def no_marker(folder: Path) -> None:
    (folder / "trainer_state.json").unlink()


def half_marker(folder: Path) -> None:
    (folder / "trainer_state.json").write_text('{"global_step": 2')


def marker_of_another_shape(folder: Path) -> None:
    (folder / "trainer_state.json").write_text("[]")


def deep_marker(folder: Path) -> None:
    (folder / "trainer_state.json").write_text("[" * 100_000)


def endless_marker(folder: Path) -> None:
    (folder / "trainer_state.json").write_text('{"a": "' + "x" * 17 * 1024**2 + '"}')


def marker_only_below(folder: Path) -> None:
    (folder / "trainer_state.json").rename(folder / "global_step/trainer_state.json")


def truncated_safetensors(folder: Path) -> None:
    (folder / "model-00003.safetensors").write_bytes(safetensors(1000)[:-1])


def overlong_safetensors(folder: Path) -> None:
    (folder / "model-00003.safetensors").write_bytes(safetensors(1000) + b"x")


def empty_safetensors(folder: Path) -> None:
    (folder / "model-00003.safetensors").write_bytes(b"")


def text_for_safetensors(folder: Path) -> None:
    (folder / "model-00003.safetensors").write_text("version https://git-lfs.github.com/spec/v1 oid sha256 size")


def header_cut_short(folder: Path) -> None:
    (folder / "model-00003.safetensors").write_bytes(safetensors(1000)[:20])


def header_without_end(folder: Path) -> None:
    (folder / "model-00003.safetensors").write_bytes(b"\xff" * 8 + safetensors(1000)[8:])


def header_of_wrong_shape(folder: Path) -> None:
    text = b'{"w": {"data_offsets": ["a", "b"]}}'
    (folder / "model-00003.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)


def truncated_zip(folder: Path) -> None:
    (folder / "optimizer.pt").write_bytes(zipped(b"moments" * 500)[:-40])


def zip_with_a_wrong_crc(folder: Path) -> None:
    content = zipped(b"moments" * 500)
    (folder / "optimizer.pt").write_bytes(content.replace(b"moments", b"monents", 1))


def empty_pickle(folder: Path) -> None:
    (folder / "scheduler.pt").write_bytes(b"")


def missing_shard(folder: Path) -> None:
    (folder / "model-00035.safetensors").unlink()


def half_index(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {')


def index_of_wrong_shape(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": [[]]}')


DAMAGES = [
    no_marker,
    half_marker,
    marker_of_another_shape,
    deep_marker,
    endless_marker,
    marker_only_below,
    truncated_safetensors,
    overlong_safetensors,
    empty_safetensors,
    text_for_safetensors,
    header_cut_short,
    header_without_end,
    header_of_wrong_shape,
    truncated_zip,
    zip_with_a_wrong_crc,
    empty_pickle,
    missing_shard,
    half_index,
    index_of_wrong_shape,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_half_a_checkpoint_is_never_pinned(place: World, ask: Keeper, damage: Callable[[Path], None]) -> None:
    folder = place.save()
    damage(folder)
    give(folder, place.alice)

    assert ask(place.ask("pin"))["kind"] == "incomplete"
    assert list(place.home.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (half_marker, "trainer_state.json: no whole JSON object: half written, or of another format"),
        (marker_of_another_shape, "trainer_state.json: no whole JSON object: half written, or of another format"),
        (empty_safetensors, "model-00003.safetensors: no safetensors file, or not yet written: it has no header"),
        (text_for_safetensors, "model-00003.safetensors: no safetensors file, or not yet written: it has no header"),
        (header_of_wrong_shape, "model-00003.safetensors: no safetensors file, or not yet written: it has no header"),
        (truncated_safetensors, "model-00003.safetensors: a safetensors file of another size than its header tells"),
        (half_index, "model.safetensors.index.json: no whole index of shards: half written, or of another format"),
        (index_of_wrong_shape, "model.safetensors.index.json: no index of shards: its weight_map has another form"),
        (missing_shard, "model.safetensors.index.json: no model-00035.safetensors"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_plain_words(
    place: World, ask: Keeper, damage: Callable[[Path], None], words: str
) -> None:
    folder = place.save()
    damage(folder)
    give(folder, place.alice)

    assert ask(place.ask("pin"))["why"].startswith(words)


def test_what_becomes_whole_is_pinned_at_the_next_try(place: World, ask: Keeper) -> None:
    folder = place.save()
    (folder / "trainer_state.json").rename(folder / "later")
    assert ask(place.ask("pin"))["kind"] == "incomplete"

    (folder / "later").rename(folder / "trainer_state.json")

    assert ask(place.ask("pin"))["files"] == 41


def test_other_trainers_formats_are_whole_too(place: World, ask: Keeper) -> None:
    """A tensorless safetensors file, an index without shards, a nested index, plain JSON, one large zip."""
    folder = place.save()
    (folder / "empty.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (folder / "other.index.json").write_text('{"metadata": {}}')
    (folder / "sub").mkdir()
    (folder / "sub/a.index.json").write_text('{"weight_map": {"w": "a.bin"}}')
    (folder / "sub/a.bin").write_bytes(zipped(os.urandom(3_000_000)))
    (folder / "config.json").write_text("not JSON, and none of our business")
    give(folder, place.alice)

    assert ask(place.ask("pin"))["files"] == 46


@pytest.mark.timed
def test_what_would_unfold_to_any_size_is_not_unfolded(place: World, ask: Keeper) -> None:
    """Many names of one small file that holds 1 GiB of zeros, compressed: answered at once, its directory read."""
    folder = place.save()
    with zipfile.ZipFile(folder / "z0.pt", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a", "w") as member:
        for _ in range(64):
            member.write(bytes(2**24))
    for number in range(1, 100):
        os.link(folder / "z0.pt", folder / f"z{number}.pt")
    give(folder, place.alice)
    start = time.monotonic()

    assert ask(place.ask("pin"))["ok"]
    assert time.monotonic() - start < 20


def test_a_checkpoint_complete_before_the_step_was_evaluated_is_another_one(place: World, ask: Keeper) -> None:
    folder = place.save()
    os.utime(folder / "trainer_state.json", (1000, 1000))

    assert ask(place.ask("pin", since_s=1001))["kind"] == "incomplete"
    assert ask(place.ask("pin", since_s=1000))["ok"]


def log_scores(folder: Path, *entries: object) -> None:
    """Let the trainer's state say what was evaluated, as Hugging Face trainers do."""
    state = {"global_step": 200, "log_history": [{"loss": 1.0, "step": 190}, *entries]}
    (folder / "trainer_state.json").write_text(json.dumps(state))


def test_a_checkpoint_whose_trainer_logged_another_score_for_the_step_is_another_one(place: World, ask: Keeper) -> None:
    """Saved by the same life before the step was first evaluated: a second training under the first one's names."""
    folder = place.save()
    log_scores(folder, {"eval/reward": 0.5, "step": 100}, {"eval/reward": 0.7, "step": 200})

    answer = ask(place.ask("pin", metric="eval/reward", score=0.5))
    assert answer["kind"] == "incomplete"
    assert "another score" in answer["why"]
    assert not place.home.exists()
    assert ask(place.ask("pin", metric="eval/reward", score=0.7 + 1e-9))["ok"]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"eval/reward": 0.7, "step": 100}],
        [{"eval/other": 0.7, "step": 200}],
        [{"eval/reward": 0.7, "step": 200}, {"eval/reward": 0.5, "step": 200}],
        [None],
        [{"eval/reward": "x", "step": 200}],
        [{"eval/reward": [], "step": 200}],
        [{"eval/reward": 10**400, "step": 200}],
    ],
    ids=str,
)
def test_a_log_without_the_steps_score_says_nothing_against_a_checkpoint(
    place: World, ask: Keeper, entries: list[object]
) -> None:
    """Trainers that save before they evaluate, that keep no log, or one that cannot be read."""
    log_scores(place.save(), *entries)

    assert ask(place.ask("pin", metric="eval/reward", score=0.5))["ok"]
