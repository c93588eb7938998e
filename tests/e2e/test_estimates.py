"""Estimates from the accounting of a real cluster: slurmdbd's word on jobs of several ends, with hostile names."""

import json
import subprocess
import sys
import time
from collections import Counter

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.adapters.slurm import SlurmCluster
from evalstopd.core.estimates import WHOLE_S, Kin, PastLife, kin_of
from evalstopd.loop import TickReport
from evalstopd.ports import Span
from evalstopd.store.memory import MemoryStore
from evalstopd.upkeep.habits import LAG_S, Habits
from tests.e2e.slurm_world import AsUser
from tests.fakes.world import FakeClock

pytestmark = [pytest.mark.slurm, pytest.mark.root, pytest.mark.slow]

NAME = "est\nbob|root|ml|9|1|1|1|1|COMPLETED=\x1b[31m"
PATIENCE_S = 120.0
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"}


def script(body: str) -> str:
    return f"#!/bin/bash\n{body}\n"


def until_ended(cluster: Cluster, jobs: list[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        states = cluster.sacct("--allocations", f"--jobs={','.join(jobs)}", "--format=State").split("\n")
        if sum(line.partition(" ")[0] in ENDED for line in states) == len(jobs):
            return
        time.sleep(0.5)
    raise AssertionError("the jobs have no end in accounting")


def elapsed_s(cluster: Cluster, *jobs: str) -> int:
    """Return how long jobs ran in all, as Slurm itself reckons."""
    lines = cluster.sacct("--allocations", f"--jobs={','.join(jobs)}", "--format=ElapsedRaw").split()
    return sum(map(int, lines))


def submit(cluster: Cluster, user: str, body: str, *options: str, name: str = NAME) -> str:
    return cluster.sbatch(user, script(body), "--output=/dev/null", "--gpus=1", f"--job-name={name}", *options)


def read(cluster: Cluster, began_s: int) -> tuple[SlurmCluster, list[PastLife]]:
    """Read as the daemon does what ended since then of these tests' jobs."""
    slurm = SlurmCluster(run=AsUser(cluster, users.DAEMON))
    lives = slurm.ended(Span(began_s, time.time() + 1))
    return slurm, [each for each in lives if each.name in (NAME, "cut")]


def test_what_jobs_used_of_their_limits_is_read_as_slurm_has_it(cluster: Cluster) -> None:
    """One call a reading, each job once, and the command judges them from a shell of the daemon's account."""
    began_s = int(time.time())
    ran = [submit(cluster, users.ALICE, "sleep 3", "--time=1") for _ in range(3)]
    failed = submit(cluster, users.ALICE, "exit 1", "--time=1")
    endless = submit(cluster, users.BOB, "sleep 1", "--time=UNLIMITED")
    cut = submit(cluster, users.ALICE, "sleep 300", "--time=10", name="cut")
    while cluster.squeue("-j", cut, "-o", "%T").strip() != "RUNNING":
        time.sleep(0.2)
    time.sleep(2.0)
    cluster.run("scancel", cut)
    until_ended(cluster, [*ran, failed, endless, cut])

    slurm, lives = read(cluster, began_s)
    end = time.monotonic() + PATIENCE_S
    # What accounting lists by job it may not list by time yet: the daemon waits for LAG_S.
    while len(lives) < 6 and time.monotonic() < end:
        time.sleep(0.5)
        slurm, lives = read(cluster, began_s)
    assert slurm.calls == 1
    assert Counter((each.user, each.state, each.limit_s) for each in lives) == {
        (users.ALICE, "COMPLETED", 60.0): 3,
        (users.ALICE, "FAILED", 60.0): 1,
        (users.ALICE, "CANCELLED", 600.0): 1,
        (users.BOB, "COMPLETED", None): 1,
    }

    clock = FakeClock(time.time() + LAG_S + 60)
    store = MemoryStore()
    habits = Habits(slurm, store, clock, lambda: (clock.time_s - began_s) / 86400)
    habits(TickReport(good=True, counts=Counter(), troubles=(), cluster="evs"), 0.0, True)
    known = habits.history("evs")
    same, cut_kin = (kin_of(users.ALICE, "ml", name)[-1] for name in (NAME, "cut"))
    assert set(known.tallies) >= {Kin(), Kin(users.ALICE), same, cut_kin}
    # Seconds of the ten minutes that would count whole; what failed at once is left out.
    assert sum(known.tallies[same].ended) * WHOLE_S == pytest.approx(elapsed_s(cluster, *ran), rel=0.01)
    assert sum(known.tallies[cut_kin].ended) == 0.0
    assert sum(known.tallies[cut_kin].cut) * WHOLE_S == pytest.approx(elapsed_s(cluster, cut), rel=0.01)

    told = [sys.executable, "-m", "evalstopd", "estimates", "--since", "1d", "--json"]
    done = subprocess.run(
        ["runuser", "-u", users.DAEMON, "--", *told],
        env={**cluster.env, "PATH": cluster.env["PATH"]}, capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {each["name"]: each for each in json.loads(done.stdout)["names"]}
    assert names[NAME]["jobs"] == 3
    off_s = 60 - elapsed_s(cluster, *ran) / 3
    assert names[NAME]["limit"]["hours"]["value"] == pytest.approx(off_s / 3600, abs=0.1 / 3600)
