"""An array's last task carries the array's own raw id: a scancel by that number would end every sister."""

from collections.abc import Callable

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.core.model import Phase
from tests.e2e.site import FALL, RISE, Site
from tests.fakes.world import HEALTHY, RISE_AND_FALL, World

ALICE = users.ALICE


def test_array_tasks_are_addressed_by_task_and_sisters_live_on() -> None:
    world = World()
    tasks = [world.train(f"r{n}", job_id=f"9_{n}", raw_id=9 if n == 2 else 10 + n) for n in range(3)]
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate("9_2", "r2", number, score)
        for n in (0, 1):
            world.evaluate(f"9_{n}", f"r{n}", number, HEALTHY[number - 1])
        world.tick()

    assert world.cluster.cancelled == [("9_2", 0)]
    assert [world.cluster.jobs[task].phase for task in tasks] == [Phase.RUNNING, Phase.RUNNING, Phase.ENDED]


@pytest.mark.slurm
@pytest.mark.mlflow
@pytest.mark.parametrize("falling", [1, 3])
def test_one_task_of_an_array_is_stopped_and_its_sisters_live_on(make_site: Callable[..., Site], falling: int) -> None:
    """ "Array last task": the last task carries the array's own raw id, and is still the only one stopped."""
    site = make_site()
    lines = [f"[ $SLURM_ARRAY_TASK_ID = {falling} ] && exec {site.command(FALL)}", f"exec {site.command(RISE)}"]
    script = "\n".join(["#!/bin/sh", *lines, ""])
    array = site.cluster.sbatch(ALICE, script, "--gpus=2", "--nodes=1", "--array=0-3")
    task = f"{array}_{falling}"
    site.wait(lambda: site.intents(task) and site.intents(task)[0].state is State.CONFIRMED, "the stop")

    sisters = [f"{array}_{n}" for n in range(4) if n != falling]
    assert site.accounted(task) == "CANCELLED"
    assert [site.state(sister) for sister in sisters] == ["RUNNING"] * 3
    site.wait(lambda: all(site.evals(sister) == 8 for sister in sisters), "the sisters' evals")
    assert all(site.intents(sister) == () for sister in sisters)
