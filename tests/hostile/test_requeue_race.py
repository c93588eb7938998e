"""Requeue exactly between last look and cancel: the new life is never hit, whoever loses the race."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.errors import Unavailable
from evalstopd.loop.ledger import Ledger
from evalstopd.store.memory import MemoryStore
from evalstopd.undo import Caller, Target, undo
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


def requeued_at_the_cancel(later_s: int) -> tuple[World, str]:
    """Return a world whose job was requeued so long after the last look, just before the cancel, and runs again."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    cancel = world.cluster.cancel

    def requeue_first(job_ids):  # type: ignore[no-untyped-def]
        world.clock.time_s += later_s
        world.cluster.requeue(job)
        return cancel(job_ids)

    world.tick(ports=replace(world.ports(), cluster=Overlaid(world.cluster, cancel=requeue_first)))
    world.cluster.start()
    return world, job


def test_a_requeue_exactly_between_the_last_look_and_the_cancel_costs_no_later_life() -> None:
    """The cancel finds a job that waits, and leaves it: then the intent sees that its life was requeued."""
    world, job = requeued_at_the_cancel(5)
    for _ in range(5):
        world.tick()

    assert world.cluster.cancelled == []
    assert world.cluster.jobs[job].phase == "running"
    assert [state for _, state in intents(world)] == [State.ABANDONED]
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert dict(events(world))["abandoned"] == "the job ended by itself before the cancel: REQUEUED"
    assert [message.kind for message in world.notifier.told] == ["early-warning"]


def hit_in_its_next_life(*, look_works: bool = True) -> tuple[World, str]:
    """Return a world whose job was requeued right before our cancel, and ran again by then: the cancel ended that life.

    Without the look after it, as after a crash, the next pass finds the job gone from the queue.
    """
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    cancel, look = world.cluster.cancel, world.cluster.look

    def requeue_first(job_ids):  # type: ignore[no-untyped-def]
        world.clock.time_s += 1
        world.cluster.requeue(job)
        world.cluster.start()
        return cancel(job_ids)

    def look_before_alone(job_ids):  # type: ignore[no-untyped-def]
        if world.cluster.cancelled and not look_works:
            raise Unavailable("no answer within 5 s")
        return look(job_ids)

    overlaid = Overlaid(world.cluster, cancel=requeue_first, look=look_before_alone)
    world.tick(ports=replace(world.ports(), cluster=overlaid))
    assert world.cluster.cancelled == [(job, 1)]
    return world, job


@pytest.mark.parametrize("look_works", [True, False])
def test_a_job_requeued_and_running_again_at_the_cancel_is_stopped_and_said_so_and_can_be_undone(
    look_works: bool,
) -> None:
    """Slurm cannot tell the lives apart for scancel, so the book must tell what was done."""
    world, job = hit_in_its_next_life(look_works=look_works)
    for _ in range(4):
        world.tick()
    assert isinstance(world.store, MemoryStore)
    (intent,) = world.store.intents_of([world.store.recent(1)[0].key])

    assert intent.state is State.CONFIRMED
    assert intent.ending is not None
    assert intent.ending.state == "CANCELLED"
    words = "the job had been requeued meanwhile: its next life was ended"
    assert words in dict(events(world))["confirmed"]
    assert words in intent.note
    stopped = [message for message in world.notifier.told if message.kind == "stopped"]
    assert [words in message.text for message in stopped] == [True]
    assert world.tracker.runs["r1"].status == "KILLED"
    ledger = Ledger(world.store, world.clock)
    done = undo(world.cluster, Target(job, intent), Caller(1001, lambda: False), ledger)
    assert (done.done, done.booked) == ("resume", True)
    (credit,) = world.store.credits_of([intent.key])
    assert credit.gpu_hours > 0


def test_a_next_life_that_its_owner_ended_later_is_no_stop_of_ours() -> None:
    """The cancel spared the job, which waited; what became of it a minute later is none of our doing."""
    world, job = requeued_at_the_cancel(1)
    world.clock.time_s += 60
    world.cluster.finish(job, "CANCELLED")
    for _ in range(4):
        world.tick()

    assert [state for _, state in intents(world)] == [State.ABANDONED]
    assert "stopped" not in {message.kind for message in world.notifier.told}


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


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_job_requeued_and_running_again_at_the_cancel_on_real_slurm(make_site: Callable[..., Site]) -> None:
    """The daemon's own process requeues the job and waits until it runs, then sends its scancel."""
    site = make_site(start=False)
    wrapper = site.service.directory / "requeuing_daemon.py"
    text = Path(__file__).with_name("requeuing_daemon.py").read_text()
    wrapper.write_text(text.replace("RUN_AGAIN = False", "RUN_AGAIN = True"))
    wrapper.chmod(0o755)
    site.service.start_daemon(wrapper=wrapper)
    script = f"#!/bin/sh\n[ ${{SLURM_RESTART_COUNT:-0}} = 0 ] || exec sleep 300\nexec {site.command(FALL)}\n"
    job = site.cluster.sbatch(users.ALICE, script, "--gpus=4", "--nodes=1")
    site.wait(lambda: site.intents(job) and site.intents(job)[0].closed, "the intent is closed")
    (intent,) = site.intents(job)

    assert intent.state is State.CONFIRMED, intent.note
    assert "the job had been requeued meanwhile: its next life was ended" in intent.note
    lines = site.cluster.sacct("-D", "-X", "-j", job, "-o", "State").splitlines()
    assert [line.split()[0] for line in lines] == ["REQUEUED", "CANCELLED"]
    assert site.run(intent.evidence.run_id)["status"] == "KILLED"
