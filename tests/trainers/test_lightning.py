"""Lightning, unmodified: its logger's run is linked, its single files are found, and it goes on from the kept one."""

from pathlib import Path

import pytest

from tests.trainers.jobs import ALICE, Jobs

pytestmark = [
    pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.trainers, pytest.mark.timeout(900),
    pytest.mark.xdist_group("trainers"),
]  # fmt: skip


def test_it_is_stopped_and_goes_on_from_the_kept_checkpoint(jobs: Jobs, submitted: dict[str, str]) -> None:
    """The logger counts steps from 0 and logs no folder: the file is found all the same."""
    job = submitted["lightning_mlp.py"]
    intent = jobs.stopped(job)
    evidence, kept = intent.evidence, Path(intent.kept_path)

    assert (evidence.metric, evidence.mode, evidence.proof) == ("val_acc", "max", "mac")
    assert evidence.scores[-1] < evidence.best_score - 0.02
    assert jobs.site.accounted(job) == "CANCELLED"
    (file,) = kept.iterdir()
    assert f"step={evidence.kept_step + 1}.ckpt" in file.name
    assert file.owner() == ALICE

    said = jobs.resume("lightning_mlp.py", file, steps=evidence.kept_step + 20)
    assert f"Restored all states from the checkpoint at {file}" in said
