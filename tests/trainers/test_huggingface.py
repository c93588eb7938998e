"""Hugging Face's Trainer, unmodified: linked, judged, pinned, stopped, and gone on with from what was kept."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.trainers.jobs import ALICE, PATIENCE_S, Jobs

pytestmark = [
    pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.trainers, pytest.mark.timeout(900),
    pytest.mark.xdist_group("trainers"),
]  # fmt: skip
HEALTHY_EVALS = 50  # 1,000 steps, an eval every 20


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


def test_a_healthy_run_beside_it_is_watched_to_its_end_and_never_stopped(jobs: Jobs, submitted: dict[str, str]) -> None:
    """The same script and rule, the same share of wrong labels, but nothing to learn by heart: its dips are noise."""
    job, site = submitted["huggingface.py, healthy"], jobs.site
    site.wait(lambda: site.evals(job) == HEALTHY_EVALS, "all its evals are read", PATIENCE_S)
    site.wait(lambda: (watch := site.watch(job)) is not None and watch.ending is not None, "its end", PATIENCE_S)
    watch = site.watch(job)
    assert watch is not None

    assert (site.accounted(job), site.intents(job)) == ("COMPLETED", ()), jobs.story(job)
    assert (watch.rung_now.word, watch.proof, watch.metric_now) == ("enforce", "mac", "eval_accuracy")
    scores = list(jobs.history(str(watch.run_id), "eval_accuracy").values())
    assert len(scores) == HEALTHY_EVALS
    assert sum(after < before for before, after in pairwise(scores)) > 2, "without a dip it is no control"
    assert [each for each in site.remarks() if each[0] == job] == []
    assert jobs.stopped(submitted["huggingface.py"])
