"""Waiting jobs and runs: who gets the GPUs that a stop frees, and the policy that reads losses."""

import json
import time
import urllib.request
from collections.abc import Callable

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from tests.e2e.site import FALL, RISE, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
ALICE, BOB = users.ALICE, users.BOB
MakeSite = Callable[..., Site]
NODE = ("--gpus=4", "--nodes=1", "--output=/dev/null")


def wait_for(site: Site, job: str, state: str) -> None:
    site.wait(lambda: site.cluster.squeue("-j", job, "-o", "%T").strip() == state, f"job {job} is {state}")


def order(site: Site, *jobs: str) -> list[str]:
    rows = [line.split() for line in site.cluster.squeue("-t", "PENDING", "-o", "%i %Q").splitlines()]
    found = {job: int(priority) for job, priority in rows if job in jobs}
    return sorted(found, key=lambda job: (-found[job], int(job)))


def test_the_gpus_that_a_stop_frees_go_to_the_job_that_the_policy_names(make_site: MakeSite) -> None:
    site = make_site(priorities={"policy": "sjf-est", "min_interval_s": 0.5})
    falling, healthy = site.train(ALICE, FALL, pace_s=2.0), site.train(BOB, RISE, pace_s=20.0)
    wait_for(site, falling, "RUNNING")
    wait_for(site, healthy, "RUNNING")
    sleeper = "#!/bin/sh\nexec sleep 300\n"
    long = site.cluster.sbatch(ALICE, sleeper, *NODE, "--time=90")
    short = site.cluster.sbatch(BOB, sleeper, *NODE, "--time=10")
    site.wait(lambda: {"told", "handed"} <= site.kinds(falling), "the stop and its heir")
    (intent,) = site.intents(falling)

    assert intent.state is State.CONFIRMED
    assert intent.handed_to == (short,)
    assert site.state(long) == "PENDING"


def log_loss(site: Site, run_id: str, *losses: float) -> None:
    """Write a training loss into a run, as anybody may who can write there."""
    for step, loss in enumerate(losses, 1):
        point = {"run_id": run_id, "key": "loss", "value": loss, "timestamp": 1000 * step, "step": step}
        request = urllib.request.Request(
            f"{site.mlflow.uri}/api/2.0/mlflow/runs/log-metric", json.dumps(point).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=30).close()


def test_loss_aware_ranks_jobs_that_ran_and_a_faked_loss_gains_nothing_on_others(make_site: MakeSite) -> None:
    """The job whose loss is said to fall fast goes before the other, and before nobody who is not governed."""
    loss_aware = {"policy": "loss-aware", "loss_aware": True, "min_interval_s": 0.5}
    site = make_site(rules={"rung": "observe", "exempt_accounts": ["free"]}, priorities=loss_aware)
    site.cluster.add_account("free")
    site.cluster.add_user(BOB, "free")
    slow, steep = (site.train(user, RISE, *NODE, "--requeue", pace_s=20.0) for user in (ALICE, BOB))
    site.wait(lambda: site.evals(slow) and site.evals(steep), "both are bound and read")
    for job, losses in ((slow, (5.0, 4.9)), (steep, (5.0, -1e9))):
        watch = site.watch(job)
        assert watch is not None
        assert watch.run_id is not None
        log_loss(site, watch.run_id, *losses)
    blockers = [site.cluster.sbatch(ALICE, "#!/bin/sh\nexec sleep 900\n", *NODE) for _ in range(2)]
    site.cluster.run("scontrol", "update", f"JobId={','.join(blockers)}", "Nice=-1000")
    for job, factor in ((slow, 0), (steep, -40)):
        site.cluster.run("scontrol", "requeue", job)
        wait_for(site, job, "PENDING")
        time.sleep(1.1)
        site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", f"SiteFactor={factor}")
    for blocker in blockers:
        wait_for(site, blocker, "RUNNING")
    other = site.cluster.sbatch(BOB, "#!/bin/sh\nexec sleep 900\n", *NODE, "--account=free", "--nice=20")
    site.wait(lambda: order(site, slow, steep, other) == [steep, other, slow], "by the loss")

    site.cluster.run("scancel", blockers[0])
    wait_for(site, steep, "RUNNING")
    assert site.cluster.squeue("-j", other, "-O", "Nice:.20").strip() == "20"
