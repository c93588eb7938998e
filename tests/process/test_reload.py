"""SIGHUP: settings are read anew between two passes, and stay as they were where the new ones are wrong."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from evalstopd.core.model import Rung
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.fakes.world import RISE_AND_FALL
from tests.store.shared_world import make_world, opened

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "store" / "pair_daemon.py"


class Running:
    """One daemon process over a shared world, whose settings a test rewrites."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world, self.log = folder, folder / "world", folder / "log"
        self.url = f"sqlite:///{folder}/store.db"
        migrate.upgrade(self.url)
        make_world(self.world)
        self.store = SqlStore(self.url)
        self.configure()
        paths = os.pathsep.join(str(ROOT / each) for each in (".", "sim", "migrations", "examples"))
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-u", str(PROGRAM), str(self.world), "-"],
                env=os.environ | {"EVALSTOPD_CONFIG": str(self.config), "PYTHONPATH": paths},
                stdout=out,
                stderr=out,
            )

    @property
    def config(self) -> Path:
        return self.folder / "evalstopd.toml"

    def configure(
        self, rung: str = "observe", tick_s: float = 1.0, uri: str = "http://127.0.0.1:9", more: str = ""
    ) -> None:
        self.config.write_text(
            f'[mlflow]\ntracking_uri = "{uri}"\nserver = "authenticated"\n[store]\nurl = "{self.url}"\n{more}\n'
            f'[rules]\nrung = "{rung}"\nrule = "k-declines:k=2"\nmetric = "score"\nmode = "max"\n'
            f'[enforce]\noverride = "a test"\nnotice_s = 0.0\n[daemon]\ntick_s = {tick_s}\nkill_switch = "/no/STOP"\n'
        )

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def said(self, words: str) -> int:
        return self.log.read_text(errors="replace").count(words)

    def wait(self, holds: Callable[[], object], what: str) -> None:
        end = time.monotonic() + 90
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.log.read_text(errors='replace')}"
            assert self.process.poll() is None, self.log.read_text(errors="replace")
            time.sleep(0.1)

    def train(self, run: str) -> str:
        with opened(self.world) as parts:
            job = parts["cluster"].submit(1001, 8, f"mlflow_run={run}")
            parts["tracker"].add_run(run).tags["slurm.job_id"] = str(parts["cluster"].jobs[job].raw_id)
        return str(job)

    def fall(self, job: str, run: str) -> None:
        with opened(self.world) as parts:
            for number, score in enumerate(RISE_AND_FALL, 1):
                parts["tracker"].log(run, number * 10, score, timestamp_ms=int(time.time() * 1000))
                folder = f"{parts['cluster'].jobs[job].work_dir}/out-{run}"
                parts["keeper"].save(folder, number * 10, keep_last=10, at_s=time.time() + 1)

    def rungs(self) -> dict[str, Rung]:
        return {watch.key.job_id: watch.terms.rung for watch in self.store.recent(10)}

    def cancelled(self) -> list[str]:
        with opened(self.world) as parts:
            return [job for job, _ in parts["cluster"].cancelled]


AnyRunning = TypeVar("AnyRunning", bound=Running)


def at_work(made: AnyRunning) -> Iterator[AnyRunning]:
    """Yield a daemon that has made its first pass, and end it."""
    made.wait(lambda: made.said("jobs, "), "the first pass")
    yield made
    made.process.kill()
    made.process.wait(60)
    made.store.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    yield from at_work(Running(tmp_path))


def test_new_settings_are_for_new_jobs_and_never_stricter_for_those_seen(daemon: Running) -> None:
    old = daemon.train("r1")
    daemon.wait(lambda: old in daemon.rungs(), "the first job is watched")
    daemon.configure(rung="enforce")
    daemon.hang_up()
    daemon.wait(lambda: daemon.said("settings reloaded"), "reloaded")
    new = daemon.train("r2")
    daemon.wait(lambda: new in daemon.rungs(), "the second job is watched")
    daemon.fall(old, "r1")
    daemon.fall(new, "r2")
    daemon.wait(daemon.cancelled, "the second job is stopped")

    assert daemon.rungs() == {old: Rung.OBSERVE, new: Rung.ENFORCE}
    daemon.wait(
        lambda: daemon.store.would_be_of([watch.key for watch in daemon.store.find(old)]), "the first is booked"
    )
    assert daemon.cancelled() == [new]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("[caps]\nstop = 3", "unknown key caps.stop"),
        ("[caps]\nstops = 0", "caps.stops"),
        ("[", "evalstopd.toml"),
    ],
)
def test_settings_that_are_wrong_change_nothing_and_are_told_in_one_line(
    daemon: Running, more: str, reason: str
) -> None:
    daemon.configure(rung="enforce", more=more)
    daemon.hang_up()
    daemon.wait(lambda: daemon.said("the settings stay as they were"), "refused")
    lines = [line for line in daemon.log.read_text().splitlines() if "stay as they were" in line]
    job = daemon.train("r1")
    daemon.wait(lambda: job in daemon.rungs(), "it goes on")

    assert len(lines) == 1
    assert reason in lines[0]
    assert daemon.rungs() == {job: Rung.OBSERVE}


def test_what_a_running_daemon_is_bound_to_stays_and_is_named(daemon: Running) -> None:
    daemon.configure(rung="warn", uri="http://127.0.0.1:10", more="lease_s = 20.0")
    daemon.hang_up()
    daemon.wait(lambda: daemon.said("settings reloaded"), "reloaded")

    assert daemon.said("mlflow.tracking_uri has changed, but not for a running daemon") == 1
    assert daemon.said("store.lease_s has changed, but not for a running daemon") == 1
    assert daemon.said("store.url has changed") == 0


def test_the_period_and_the_level_of_the_log_change_at_once(daemon: Running) -> None:
    daemon.configure(tick_s=300.0)
    daemon.hang_up()
    daemon.wait(lambda: daemon.said("settings reloaded") == 1, "reloaded")
    # A pass that was due already may still come.
    daemon.wait(lambda: passes_within(daemon, 3.0) == 0, "no pass for three seconds")
    before = daemon.said("jobs, ")
    daemon.configure(tick_s=0.5)
    daemon.hang_up()
    daemon.wait(lambda: daemon.said("jobs, ") > before + 2, "ticks again")


def passes_within(daemon: Running, seconds: float) -> int:
    before = daemon.said("jobs, ")
    time.sleep(seconds)
    return daemon.said("jobs, ") - before


def test_many_hangups_end_nothing(daemon: Running) -> None:
    for _ in range(20):
        daemon.hang_up()
    daemon.wait(lambda: daemon.said("settings reloaded"), "reloaded")
    before = daemon.said("jobs, ")
    daemon.wait(lambda: daemon.said("jobs, ") > before, "a tick after")
    daemon.process.send_signal(signal.SIGTERM)

    assert daemon.process.wait(60) == 0
