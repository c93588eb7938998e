"""Hugging Face's Trainer, unmodified: linked, judged, pinned, stopped, and gone on with from what was kept."""

import json
from pathlib import Path

import pytest

from tests.trainers.jobs import ALICE, Jobs

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.trainers, pytest.mark.timeout(900)]


def test_it_is_stopped_and_goes_on_from_the_kept_checkpoint(jobs: Jobs, submitted: dict[str, str]) -> None:
    job = submitted["huggingface.py"]
    intent = jobs.stopped(job)
    evidence, kept = intent.evidence, Path(intent.kept_path)

    assert (evidence.metric, evidence.mode, evidence.proof) == ("eval_accuracy", "max", "mac")
    assert evidence.scores[-1] < evidence.best_score - 0.05
    assert jobs.site.accounted(job) == "CANCELLED"
    state = json.loads((kept / "trainer_state.json").read_text())
    assert state["global_step"] == evidence.kept_step
    assert kept.owner() == ALICE

    said = jobs.resume("huggingface.py", kept, steps=evidence.kept_step + 20)
    assert f"'epoch': '{(evidence.kept_step + 20) / 19:.2f}" in said
