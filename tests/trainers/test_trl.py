"""TRL's GRPOTrainer, unmodified: the reward it trains on is never taken for a score; the true one judges it."""

from pathlib import Path

import pytest

from tests.trainers.jobs import Jobs

pytestmark = [
    pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.trainers, pytest.mark.timeout(900),
    pytest.mark.xdist_group("trainers"),
]  # fmt: skip


def test_it_is_stopped_by_the_true_reward_and_goes_on_from_the_kept_checkpoint(
    jobs: Jobs, submitted: dict[str, str]
) -> None:
    job = submitted["trl_grpo.py"]
    intent = jobs.stopped(job)
    evidence, kept = intent.evidence, Path(intent.kept_path)

    assert (evidence.metric, evidence.mode, evidence.proof) == ("eval_rewards/true_reward/mean", "max", "mac")
    assert evidence.scores[-1] < evidence.best_score - 0.1
    proxy = jobs.history(evidence.run_id, "eval_reward")
    assert proxy[evidence.trigger_step] > proxy[evidence.best_step]
    assert jobs.site.accounted(job) == "CANCELLED"
    assert {"model.safetensors", "trainer_state.json"} <= {path.name for path in kept.iterdir()}

    jobs.resume("trl_grpo.py", kept, steps=evidence.kept_step + 5)
    assert (jobs.resumed("trl_grpo.py") / "out" / f"checkpoint-{evidence.kept_step + 5}").is_dir()
