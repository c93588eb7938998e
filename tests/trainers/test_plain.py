"""A loop of one's own with plain MLflow: single files of torch.save, found by the step in their name."""

from pathlib import Path

import pytest

from tests.trainers.jobs import Jobs

pytestmark = [
    pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.trainers, pytest.mark.timeout(900),
    pytest.mark.xdist_group("trainers"),
]  # fmt: skip


def test_it_is_stopped_and_goes_on_from_the_kept_checkpoint(jobs: Jobs, submitted: dict[str, str]) -> None:
    job = submitted["plain.py"]
    intent = jobs.stopped(job)
    evidence, kept = intent.evidence, Path(intent.kept_path)

    assert (evidence.metric, evidence.mode, evidence.proof) == ("val/accuracy", "max", "mac")
    assert evidence.scores[-1] < evidence.best_score - 0.01
    assert jobs.site.accounted(job) == "CANCELLED"
    (file,) = kept.iterdir()
    assert file.name == f"step_{evidence.kept_step:06d}.pt"

    said = jobs.resume("plain.py", file, steps=evidence.kept_step + 20)
    assert f"going on from step {evidence.kept_step}" in said
