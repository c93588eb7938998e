"""Trainers rotate checkpoints away while they are pinned: a pin is whole, or there is none."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.keeper.world import SHARDS, Keeper, World, give, safetensors, slow_checkpoint, wait_for

pytestmark = pytest.mark.root

UNLINK_ONCE_LINKED = """
import os, sys
victim = sys.argv[1]
print("ready", flush=True)
while os.stat(victim).st_nlink == 1:
    pass
os.unlink(victim)
"""


@pytest.mark.parametrize("delay_ms", [0, 0.5, 1, 1.5, 2, 3, 5, 8, 20, 100, 400])
def test_rotation_at_any_time_leaves_a_whole_pin_or_none(place: World, ask: Keeper, delay_ms: float) -> None:
    folder = place.save()
    trainer = threading.Timer(delay_ms / 1000, shutil.rmtree, [folder])
    trainer.start()

    answer = ask(place.ask("pin"))
    trainer.join()

    pinned = place.home / "step-200"
    if answer["ok"]:
        assert sum(path.is_file() for path in pinned.rglob("*")) == 41
        assert ask(place.ask("verify")) == answer
    else:
        assert answer["kind"] in {"missing", "incomplete"}
        assert not pinned.exists()
        assert not place.home.exists() or list(place.home.iterdir()) == []


def test_a_file_unlinked_after_it_was_linked_is_noticed(place: World, ask: Keeper) -> None:
    """The pin would have all files, but whether the checkpoint was whole can no longer be said."""
    folder = place.save()
    for number in range(3000):  # so that linking takes longer than a neighbour needs to look
        (folder / f"rank-{number}.txt").write_text("x")
    give(folder, place.alice)
    victim = folder / os.listdir(folder)[1]
    command = [sys.executable, "-c", UNLINK_ONCE_LINKED, str(victim)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as trainer:
        assert trainer.stdout
        assert trainer.stdout.readline() == b"ready\n"

        answer = ask(place.ask("pin"))

    assert answer.get("kind") == "incomplete", answer
    assert list(place.home.iterdir()) == []


def grow(path: Path, stop: threading.Event) -> None:
    while not stop.is_set():
        with open(path, "ab") as file:
            file.write(b"x")
        time.sleep(0.0005)


def test_a_file_still_being_written_is_noticed(place: World, ask: Keeper) -> None:
    folder = place.save()
    log, stop = folder / "log.txt", threading.Event()
    log.touch()
    give(folder, place.alice)
    writer = threading.Thread(target=grow, args=(log, stop))
    writer.start()

    answer = ask(place.ask("pin"))
    stop.set()
    writer.join()

    assert answer.get("kind") == "incomplete", answer
    assert ask(place.ask("pin"))["ok"]


def test_a_file_written_while_the_structure_is_checked_is_noticed(place: World, ask: Keeper) -> None:
    """After the second list, before the rename: here checking half a GiB of zeros leaves the time."""
    folder = slow_checkpoint(place, gib=0.5)
    with ask.connect() as peer:
        peer.send(json.dumps(place.ask("pin")).encode())
        last = place.home / ".tmp-step-200/global_step/rank_0.pt"
        wait_for(lambda: [str(last)] if last.exists() else [], str)
        time.sleep(0.1)
        with open(folder / "scheduler.pt", "ab") as file:
            file.write(b"x")
        answer = json.loads(peer.recv(70_000))

    assert answer == {"ok": False, "kind": "incomplete", "why": "still being written"}
    assert ask(place.ask("pin"))["ok"]


def replace_shards(folder: Path, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        path = folder / f"model-{number % SHARDS:05}.safetensors"
        (folder / "new").write_bytes(safetensors(1000))
        os.chown(folder / "new", folder.stat().st_uid, -1)
        (folder / "new").rename(path)
        number += 1


def test_files_replaced_meanwhile_never_make_a_pin_that_fails_to_verify(place: World, ask: Keeper) -> None:
    folder, stop = place.save(), threading.Event()
    trainer = threading.Thread(target=replace_shards, args=(folder, stop))
    trainer.start()
    answers = [ask(place.ask("pin")) for _ in range(5)]
    stop.set()
    trainer.join()

    for answer in answers:
        assert answer["ok"] or answer["kind"] in {"incomplete", "refused"}
    assert ask(place.ask("pin"))["ok"]
    assert ask(place.ask("verify"))["ok"]
