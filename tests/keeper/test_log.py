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
