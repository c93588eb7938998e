"""Requeue exactly between last look and cancel: the new life is never hit, whoever loses the race."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from tests.e2e.site import FALL, Site
from tests.fakes.overlaid import Overlaid
from tests.fakes.world import RISE_AND_FALL, World
from tests.loop.told import events, intents


def test_a_requeue_between_the_pass_and_the_last_look_saves_the_new_life() -> None:
    world = World(gpus=8)
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL[:4], 1):
        world.evaluate(job, "r1", number, score)
        world.tick()
    world.evaluate(job, "r1", 5, RISE_AND_FALL[4])
    looked = world.cluster.look

    def requeue_first(job_ids):  # type: ignore[no-untyped-def]
        world.clock.time_s += 5
        world.cluster.requeue(job)
        world.cluster.start()
        return looked(job_ids)

    world.tick(ports=replace(world.ports(), cluster=Overlaid(world.cluster, look=requeue_first)))

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.ABANDONED)]


def test_a_requeue_exactly_between_the_last_look_and_the_cancel_costs_no_later_life() -> None:
    """The cancel finds a job that waits, and leaves it: then the intent sees that its life was requeued."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    cancel = world.cluster.cancel

    def requeue_first(job_ids):  # type: ignore[no-untyped-def]
        world.clock.time_s += 5
        world.cluster.requeue(job)
        return cancel(job_ids)

    world.tick(ports=replace(world.ports(), cluster=Overlaid(world.cluster, cancel=requeue_first)))
    world.cluster.start()
    for _ in range(5):
        world.tick()

    assert world.cluster.cancelled == []
    assert world.cluster.jobs[job].phase == "running"
    assert [state for _, state in intents(world)] == [State.ABANDONED]
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert dict(events(world))["abandoned"] == "the job ended by itself before the cancel: REQUEUED"
    assert [message.kind for message in world.notifier.told] == ["early-warning"]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_requeue_exactly_between_the_last_look_and_the_cancel_on_real_slurm(make_site: Callable[..., Site]) -> None:
    """The daemon's own process requeues the job right before its scancel: the new life waits, and then runs."""
    site = make_site(start=False)
    wrapper = site.service.directory / "requeuing_daemon.py"
    shutil.copy(Path(__file__).with_name("requeuing_daemon.py"), wrapper)
    wrapper.chmod(0o755)
    site.service.start_daemon(wrapper=wrapper)
    script = f"#!/bin/sh\n[ ${{SLURM_RESTART_COUNT:-0}} = 0 ] || exec sleep 300\nexec {site.command(FALL)}\n"
    job = site.cluster.sbatch(users.ALICE, script, "--gpus=4", "--nodes=1")
    site.wait(lambda: site.intents(job) and site.intents(job)[0].closed, "the intent is closed")
    assert site.intents(job)[0].state is State.ABANDONED
    assert site.state(job) == "PENDING"
    site.cluster.start_again(job)
    site.wait(lambda: site.state(job) == "RUNNING", "the second life")
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count(" watched") >= 8, "passes in the second life")

    assert site.state(job) == "RUNNING"

    def lives() -> list[str]:
        return [line.split()[0] for line in site.cluster.sacct("-D", "-X", "-j", job, "-o", "State").splitlines()]

    # Accounting lags behind.
    site.wait(lambda: lives() == ["REQUEUED", "RUNNING"], "both lives in accounting")
    log = (site.cluster.directory / "log" / "slurmctld.log").read_text()
    assert re.findall(rf"REQUEST_KILL_JOB JobId={job}\b", log) == []
    assert [kind for kind, _ in site.events(job)].count("cancelling") == 1
    assert site.run(site.intents(job)[0].evidence.run_id)["status"] == "RUNNING"
