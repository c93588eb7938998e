"""Preemption on a real Slurm cluster: a long job yields to a short one, and goes on from its checkpoint."""

from collections.abc import Callable

import pytest
from demo.rig import users

from evalstopd.core.preempt import Preemption, PreemptState
from tests.e2e.site import Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.slow]
ALICE, BOB = users.ALICE, users.BOB
HALF = ("--gpus=4", "--nodes=1")
SETTINGS = {
    "rules": {"rung": "warn"},
    "preempt": {"policy": "srtf-est", "min_run_s": 3, "fresh_s": 120},
}
RISING = ",".join(f"{0.1 + number / 100:.2f}" for number in range(60))
MakeSite = Callable[..., Site]


def train(site: Site, *options: str) -> str:
    """Submit a job of alice's that trains on, in each life from where the last one saved."""
    return site.train(ALICE, RISING, *HALF, "--time=120", *options, pace_s=1.0, more="--resume --linger-s 0")


def fill(site: Site) -> str:
    """Let a job of alice's that has no run, and no checkpoint, hold the other half for longer than any."""
    job = site.cluster.sbatch(ALICE, "#!/bin/sh\nexec sleep 600\n", *HALF, "--time=240", "--output=/dev/null")
    site.wait(lambda: site.state(job) == "RUNNING", "the job without a checkpoint runs")
    return job


def short(site: Site) -> str:
    return site.cluster.sbatch(BOB, "#!/bin/sh\nexec sleep 3\n", *HALF, "--time=1", "--output=/dev/null")


def asked_for(site: Site) -> tuple[Preemption, ...]:
    found: tuple[Preemption, ...] = site.store.preemptions(site.cluster.name, 0.0)
    return found


def test_a_long_job_yields_to_a_short_one_and_goes_on_from_its_checkpoint(make_site: MakeSite) -> None:
    """The job without a checkpoint would run longer still, and is left alone."""
    site = make_site(**SETTINGS)
    bare, long = fill(site), train(site)
    site.wait(lambda: site.evals(long) >= 4, "some evals of the long job")
    first = short(site)
    site.wait(lambda: [each.state for each in asked_for(site)] == [PreemptState.DONE], "the long job yields")
    site.wait(lambda: site.accounted(first) == "COMPLETED", "the short job has run")

    assert (site.state(bare), site.state(long)) == ("RUNNING", "PENDING")
    site.cluster.start_again(long)
    site.wait(lambda: site.accounted(long) == "COMPLETED", "the long job has gone on to its end", 180.0)
    lives = site.cluster.sacct("-D", "-X", "-j", long, "-o", "State").split()
    resumed = site.cluster.work(ALICE) / f"out-{long}" / "resumed"
    watch = site.watch(long)

    assert lives == ["REQUEUED", "COMPLETED"]
    assert 40 <= int(resumed.read_text()) < 600
    site.wait(lambda: site.evals(long) == 60, "each eval once, over both lives")
    assert watch is not None
    assert watch.life.restarts == 1
    (yielded,) = asked_for(site)
    assert (yielded.key.job_id, yielded.heir, yielded.gpus, yielded.tries) == (long, first, 4, 1)
    assert [code for job, code, _ in site.remarks() if job == long].count("preempted") == 1
    assert site.state(bare) == "RUNNING"


def test_who_may_not_be_requeued_or_has_no_checkpoint_is_left_alone(make_site: MakeSite) -> None:
    site = make_site(**SETTINGS)
    bare, fixed = fill(site), train(site, "--no-requeue")
    site.wait(lambda: site.evals(fixed) >= 4, "some evals of the job that may not be requeued")
    waits = short(site)
    site.wait(lambda: site.cluster.squeue("-j", waits, "-o", "%r").strip() == "Resources", "Slurm has no room")
    seen = site.evals(fixed)
    site.wait(lambda: site.evals(fixed) >= seen + 5, "some passes more")

    assert [site.state(job) for job in (bare, fixed, waits)] == ["RUNNING", "RUNNING", "PENDING"]
    assert asked_for(site) == ()
