"""A training log that an earlier life of the job left never bears out a stop of a later one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from tests.e2e.site import FALL, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
LIVES = Path(__file__).with_name("two_lives.py")


def second_life(site: Site, *more: str) -> str:
    """Submit the job, requeue it once it is watched, and return it in its next life."""
    program = site.service.directory / LIVES.name
    shutil.copy(LIVES, program)
    program.chmod(0o755)
    command = " ".join(["/usr/bin/python3", str(program), site.mlflow.uri, FALL, *more])
    job = site.cluster.sbatch(users.ALICE, f"#!/bin/sh\nexec {command}\n", "--gpus=1", "--nodes=1", "--requeue")
    site.wait(lambda: site.watch(job), "the first life is watched")
    site.cluster.run("scontrol", "requeue", job)
    site.wait(lambda: site.state(job) == "PENDING", "the first life is over")
    site.cluster.start_again(job)
    site.wait(lambda: site.state(job) == "RUNNING", "the next life")
    return job


def test_the_same_scores_in_a_log_of_the_life_before_are_only_warned_of(make_site: Callable[..., Site]) -> None:
    """All that the tracker says is in the owner's file, but the life that is to be stopped did not write it."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    job = second_life(site)
    site.wait(lambda: site.intents(job) and site.evals(job) == 8, "the decision, and all evals")
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count(" watched") >= 5, "passes after it")

    assert [(each.rung, each.state, each.life.restarts) for each in site.intents(job)] == [(Rung.WARN, State.WARNED, 1)]
    assert site.state(job) == "RUNNING"
    doubts = [text for whose, code, text in site.remarks() if (whose, code) == (job, "not-corroborated")]
    assert [text.rpartition(": ")[2] for text in doubts] == [
        "no trainer_state.json or metrics.csv written since the job's present life began"
    ]


def test_the_same_file_written_by_the_present_life_is_borne_out(make_site: Callable[..., Site]) -> None:
    """Nothing but the time of its writing is another: the case above does not rest on anything else."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    job = second_life(site, "touch")
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop")

    assert [(each.rung, each.life.restarts) for each in site.intents(job)] == [(Rung.ENFORCE, 1)]
    assert "checkpoint-80/trainer_state.json" in site.intents(job)[0].evidence.corroborated
    assert site.accounted(job) == "CANCELLED"
