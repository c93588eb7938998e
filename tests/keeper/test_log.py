"""The owner's newest training log: read as the owner, from this life alone, whatever lies there."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.keeper.world import Keeper, World, give

pytestmark = pytest.mark.root
METRIC = "eval/reward"


def entry(step: int, score: object, **more: object) -> dict[str, object]:
    return {"step": step, METRIC: score, **more}


def write(place: World, where: str, *entries: object, at_s: int = 1000) -> Path:
    """Write a log as Hugging Face's Trainer does, at a moment."""
    file = place.run / where / "trainer_state.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"log_history": list(entries), "global_step": 7}))
    give(file.parent, place.alice)
    os.utime(file, (at_s, at_s))
    return file


def test_the_metric_and_what_tells_of_its_noise_come_in_the_order_they_were_logged(place: World, ask: Keeper) -> None:
    noise = {f"{METRIC}_stderr": 0.01, "eval/runtime": 2.0, "epoch": 1.5, "eval/steps_per_second": 9.0}
    file = write(
        place, "checkpoint-20", {"loss": 1.0, "step": 5}, entry(10, 0.5, **noise), entry(20, 1), entry(20, 0.25)
    )

    answer = ask(place.ask("log"))

    assert answer["file"] == "checkpoint-20/trainer_state.json"
    assert answer["digest"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert answer["series"] == {
        METRIC: [[10, 0.5], [20, 1.0], [20, 0.25]],
        f"{METRIC}_stderr": [[10, 0.01]],
        "eval/runtime": [[10, 2.0]],
    }


def test_the_newest_log_is_read_and_none_of_an_earlier_life(place: World, ask: Keeper) -> None:
    write(place, "checkpoint-900", entry(900, 0.1), at_s=500)
    write(place, "checkpoint-20", entry(20, 0.2), at_s=1000)
    write(place, "checkpoint-10", entry(10, 0.3), at_s=900)
    assert ask(place.ask("log", since_s=800))["file"] == "checkpoint-20/trainer_state.json"

    write(place, ".", entry(30, 0.4), at_s=1100)
    assert ask(place.ask("log", since_s=800))["file"] == "trainer_state.json"

    late = ask(place.ask("log", since_s=1101))
    assert (late["ok"], late["kind"]) == (False, "missing")


def test_nothing_is_found_where_nothing_was_logged(place: World, ask: Keeper) -> None:
    assert ask(place.ask("log"))["kind"] == "missing"
    shutil.rmtree(place.run)
    assert ask(place.ask("log"))["kind"] == "missing"


def test_what_is_no_finite_number_at_a_step_is_left_out(place: World, ask: Keeper) -> None:
    write(place, ".", entry(1, float("nan")), entry(2, float("inf")), entry(-1, 0.5), entry(10**18, 0.5),
          {METRIC: 0.1}, {METRIC: 0.1, "step": "3"}, {METRIC: 0.1, "step": True}, entry(4, "0.5"), entry(5, 0.5),
          entry(6, 0.5, **{"x" * 300 + "_n": 1, "bad\nname_n": 1}))  # fmt: skip

    assert ask(place.ask("log"))["series"] == {METRIC: [[4, 0.5], [5, 0.5], [6, 0.5]]}


TEXTS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "half": lambda: b'{"log_history": [{"step": 1, ',
    "no object": lambda: b"[]",
    "no list": lambda: b'{"log_history": 7}',
    "entries that are none": lambda: b'{"log_history": [7]}',
    "nested": lambda: b'{"log_history": ' + b"[" * 500_000,
    "a number of a million digits": lambda: b'{"log_history": [{"step": 1, "eval/reward": ' + b"9" * 10**6 + b"}]}",
    "a score that is a list": lambda: b'{"log_history": [{"step": 1, "eval/reward": [1]}]}',
    "no text": lambda: b"\xff\xfe\x00" * 1000,
    "a pickle": lambda: b"\x80\x04\x95csystem\nX.",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_log_that_cannot_be_read_is_not_whole(place: World, ask: Keeper, text: str) -> None:
    write(place, ".").write_bytes(TEXTS[text]())

    assert ask(place.ask("log"))["kind"] == "incomplete"


def test_more_than_an_answer_holds_is_refused(place: World, ask: Keeper) -> None:
    write(place, ".", *(entry(step, step / 7) for step in range(5000)))

    answer = ask(place.ask("log"))

    assert (answer["kind"], answer["why"]) == ("refused", "trainer_state.json has more evals than an answer holds")


def test_a_log_past_the_limit_of_bytes_is_refused_even_a_sparse_one(place: World, ask: Keeper) -> None:
    with write(place, ".", entry(1, 0.5)).open("r+b") as file:
        file.truncate(2**40)

    assert ask(place.ask("log"))["kind"] == "refused"


def test_links_pipes_and_what_is_anothers_are_refused(place: World, ask: Keeper) -> None:
    """Nothing is followed: a link could lead to the log of another run, with a fall of its own."""
    other = write(place, "../other/checkpoint-1", entry(1, 0.5))
    marker = place.run / "trainer_state.json"
    marker.symlink_to(other)
    give(place.run, place.alice)
    assert ask(place.ask("log"))["kind"] == "refused"
    marker.unlink()

    os.mkfifo(marker)
    give(place.run, place.alice)
    assert ask(place.ask("log"))["kind"] == "refused"
    marker.unlink()

    write(place, ".", entry(1, 0.5))
    give(marker, place.bob)
    assert "not the owner's" in ask(place.ask("log"))["why"]
    marker.unlink()

    (place.run / "checkpoint-1").symlink_to(other.parent)
    give(place.run, place.alice)
    assert ask(place.ask("log"))["kind"] == "refused"


def test_a_folder_that_is_a_strangers_is_refused(place: World, ask: Keeper) -> None:
    write(place, ".", entry(1, 0.5))
    (place.root / "bob/run/trainer_state.json").write_text(json.dumps({"log_history": [entry(1, 0.5)]}))
    give(place.root / "bob", place.bob)

    answer = ask(place.ask("log", output_dir=str(place.root / "bob/run")))

    assert (answer["kind"], answer["why"]) == ("refused", "not the owner's: run")


def test_a_folder_of_thousands_of_names_costs_little(place: World, ask: Keeper) -> None:
    write(place, ".", entry(1, 0.5))
    for number in range(30_000):
        (place.run / f"checkpoint-{number}").touch()
    give(place.run, place.alice)

    assert ask(place.ask("log"))["series"] == {METRIC: [[1, 0.5]]}


def test_a_request_without_the_metric_is_malformed(place: World, ask: Keeper) -> None:
    request = place.ask("log")
    del request["metric"]

    assert ask(request)["kind"] == "refused"


def table(place: World, where: str, text: str, at_s: int = 1000) -> Path:
    """Write a log as Lightning's CSVLogger does, at a moment."""
    file = place.run / where / "metrics.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    for folder in (file.parent, file.parent.parent, place.run):
        give(folder, place.alice)
    os.utime(file, (at_s, at_s))
    return file


HEAD = f"epoch,{METRIC},{METRIC}_stderr,step,train_loss\n"


@pytest.mark.parametrize("where", [".", "lightning_logs/version_3"])
def test_a_table_of_lightnings_is_read_like_the_trainers_own_log(place: World, ask: Keeper, where: str) -> None:
    """But for its last line, which is only half written."""
    file = table(place, where, f"{HEAD}0,,,4,0.7\n0,0.5,0.01,9,\n1,1.0,,19,\n1,nan,,29,\n2,0.25,,39,0.1\n2,0.2,,4")

    answer = ask(place.ask("log"))

    assert answer["file"] == str(file.relative_to(place.run))
    assert answer["digest"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert answer["series"] == {METRIC: [[9, 0.5], [19, 1.0], [39, 0.25]], f"{METRIC}_stderr": [[9, 0.01]]}


def test_a_table_beside_the_checkpoints_is_the_runs_where_that_folder_is_the_owners(place: World, ask: Keeper) -> None:
    """ModelCheckpoint saves to `checkpoints` below the CSVLogger's folder, and nowhere else is looked above."""
    for name in ("checkpoints", "other"):
        (place.run / name).mkdir()
    table(place, ".", f"{HEAD}0,0.5,,9,\n")
    give(place.run, place.alice)
    inside = ask(place.ask("log", output_dir=f"{place.run}/checkpoints"))

    assert (inside["file"], inside["series"]) == ("../metrics.csv", {METRIC: [[9, 0.5]]})
    assert ask(place.ask("log", output_dir=f"{place.run}/other"))["kind"] == "missing"
    os.chown(place.run, place.bob.pw_uid, -1)
    assert ask(place.ask("log", output_dir=f"{place.run}/checkpoints"))["kind"] == "missing"


def test_the_newest_table_counts_where_the_trainer_wrote_no_log_in_this_life(place: World, ask: Keeper) -> None:
    write(place, "checkpoint-20", entry(20, 0.2), at_s=900)
    table(place, "lightning_logs/version_0", f"{HEAD}0,0.5,,9,\n", at_s=1000)
    table(place, "lightning_logs/version_1", f"{HEAD}0,0.6,,9,\n", at_s=950)

    assert ask(place.ask("log", since_s=800))["file"] == "checkpoint-20/trainer_state.json"
    assert ask(place.ask("log", since_s=901))["file"] == "lightning_logs/version_0/metrics.csv"
    assert ask(place.ask("log", since_s=1001))["kind"] == "missing"


TABLES = {
    "no text": "\udcff\udcfe\n1\n",
    "a step that is no number": f"{HEAD}0,0.5,,x,\n",
    "a score that is no number": f"{HEAD}0,high,,9,\n",
    "a step of a million digits": f"{HEAD}0,0.5,,{'9' * 10**6},\n",
    "a cell past the limit": f"{HEAD}0,{'5' * 200_000},,9,\n",
}


@pytest.mark.parametrize("text", TABLES)
def test_a_table_that_cannot_be_read_is_not_whole(place: World, ask: Keeper, text: str) -> None:
    table(place, ".", TABLES[text])

    assert ask(place.ask("log"))["kind"] == "incomplete"


@pytest.mark.parametrize(
    "text",
    ["", "\n", HEAD, HEAD.strip(), "epoch,step\n1,2\n", f"{METRIC}\n0.5\n", f"{HEAD}0\n", f"{HEAD}0,0.5,,{10**15},\n"],
)
def test_a_table_without_the_metric_at_a_step_tells_nothing(place: World, ask: Keeper, text: str) -> None:
    table(place, ".", text)

    assert ask(place.ask("log"))["series"] == {}


def test_a_table_of_a_million_columns_costs_no_more_than_its_bytes(place: World, ask: Keeper) -> None:
    """What is not asked for is not looked at: lines times columns would hold the keeper up for hours."""
    columns = "a," * 2_000_000
    table(place, ".", f"step,{METRIC},{columns}\n" + "1,0.5\n" * 1_000_000 + "2,0.25\n")
    answer = ask(place.ask("log"))

    assert (answer["ok"], answer["kind"]) == (False, "refused")
    assert "more evals than an answer holds" in answer["why"]


def test_links_and_what_is_anothers_are_refused_as_tables_too(place: World, ask: Keeper) -> None:
    other = table(place, "../other", f"{HEAD}0,0.5,,9,\n")
    (place.run / "metrics.csv").symlink_to(other)
    give(place.run, place.alice)
    assert ask(place.ask("log"))["kind"] == "refused"
    (place.run / "metrics.csv").unlink()

    (place.run / "lightning_logs").symlink_to(other.parent)
    give(place.run, place.alice)
    assert ask(place.ask("log"))["kind"] == "missing"
    (place.run / "lightning_logs").unlink()

    (place.run / "lightning_logs").mkdir()
    (place.run / "lightning_logs/version_0").symlink_to(other.parent)
    give(place.run, place.alice)
    assert ask(place.ask("log"))["kind"] == "refused"
