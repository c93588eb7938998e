"""Lightning's sharded checkpoints by Lightning itself: pinned while two processes save, and gone on with."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.keeper.world import Keeper, World, keeper, world

pytestmark = [pytest.mark.root, pytest.mark.trainers, pytest.mark.timeout(900)]
SCRIPT = Path(__file__).parent / "sharded_trainer.py"
FILES = {"__0_0.distcp", "__1_0.distcp", ".metadata", "meta.pt"}
SAVED = (4, 8, 12, 16)
PATIENCE_S = 600.0


@pytest.fixture
def place() -> Iterator[World]:
    pytest.importorskip("lightning", reason="TRAINERS NOT TESTED: not installed (extra `trainers`): lightning")
    with world() as made:
        yield made


@pytest.fixture
def ask(place: World) -> Iterator[Keeper]:
    with keeper(place.root) as running:
        yield running


@contextmanager
def training(place: World, folder: Path, *resume: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run the script as alice; yield its process and its log."""
    home, log = place.root / "alice", place.root / f"{folder.name}.log"
    script = home / SCRIPT.name
    script.write_bytes(SCRIPT.read_bytes())  # the clone may be closed to alice
    command = [sys.executable, "-W", "ignore", str(script), str(folder), *resume]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    owner = place.alice
    with log.open("wb") as out, subprocess.Popen(
        command, user=owner.pw_uid, group=owner.pw_gid, extra_groups=[], cwd=home, env=environment, stdout=out,
        stderr=out,
    ) as process:  # fmt: skip
        yield process, log
        process.wait(PATIENCE_S)
    assert process.returncode == 0, log.read_text(errors="replace")[-3000:]


def test_each_is_pinned_whole_while_the_trainer_saves_the_next_and_one_is_gone_on_with(
    place: World, ask: Keeper
) -> None:
    """The logger counts from 0: the folder of `step=4` is the checkpoint of the eval at step 3."""
    wanted, early = {saved - 1 for saved in SAVED}, 0
    until_s = time.monotonic() + PATIENCE_S
    with training(place, place.run) as (process, log):
        while wanted and time.monotonic() < until_s:
            for step in sorted(wanted):
                answer = ask(place.ask("pin", step=step))
                early += answer.get("kind") == "incomplete"
                wanted -= {step} if answer["ok"] else set()
            if process.poll() not in (None, 0):
                break
    assert not wanted, log.read_text(errors="replace")[-3000:]
    print(f"asked too early for a whole folder: {early} times")
    for saved in SAVED:
        source, pin = place.run / f"epoch=0-step={saved}.ckpt", place.home / f"step-{saved - 1}"
        sizes = {path.name: path.stat().st_size for path in pin.iterdir()}
        assert set(sizes) == FILES
        assert sizes == {path.name: path.stat().st_size for path in source.iterdir()}
    best = ask(place.ask("publish", step=7))["path"]
    with training(place, place.root / "alice/resumed", best) as (_, log):
        pass
    assert f"Restored all states from the checkpoint at {best}" in log.read_text(errors="replace")
