"""On an open server, what Lightning's own CSVLogger wrote bears out the stop, as a trainer's own log does."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from tests.e2e.site import FALL, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.trainers, pytest.mark.timeout(600)]
PROGRAM = Path(__file__).with_name("csv_trainer.py")


def stopped(make_site: Callable[..., Site], words: str) -> tuple[Site, str]:
    """Return a site and a job of it that was stopped, with these words in its comment."""
    pytest.importorskip("lightning", reason="TRAINERS NOT TESTED: lightning is not installed (extra `trainers`)")
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    probe = site.cluster.as_user(users.ALICE, [sys.executable, "-c", "import json"])
    if probe.returncode:
        pytest.skip(f"TRAINERS NOT TESTED: {users.ALICE} cannot run {sys.executable}: {probe.stderr.strip()[-200:]}")
    program = site.service.directory / PROGRAM.name
    shutil.copy(PROGRAM, program)
    program.chmod(0o755)
    command = f"{sys.executable} {program} {site.mlflow.uri} {FALL} {words}"
    job = site.cluster.sbatch(users.ALICE, f"#!/bin/sh\nexec {command}\n", "--gpus=1", "--nodes=1")
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop", 400)
    return site, job


def test_its_table_lifts_the_ceiling_for_the_stop_that_it_bears_out(make_site: Callable[..., Site]) -> None:
    site, job = stopped(make_site, "")

    assert (site.intents(job)[0].rung, site.accounted(job)) == (Rung.ENFORCE, "CANCELLED")
    assert re.fullmatch(
        r"steps 30 to \d+ and the verdict as in the owner's \.\./metrics\.csv, SHA-256 [0-9a-f]{64}",
        site.intents(job)[0].evidence.corroborated,
    )


def test_its_table_does_not_contradict_the_owners_word_on_its_own_fall(make_site: Callable[..., Site]) -> None:
    site, job = stopped(make_site, "evalstop=enforce")

    assert (site.intents(job)[0].rung, site.accounted(job)) == (Rung.ENFORCE, "CANCELLED")
    evidence = site.intents(job)[0].evidence
    assert (evidence.corroborated, evidence.contradicted) == ("", "")
