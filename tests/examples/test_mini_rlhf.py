"""The miniature RLHF job: what it computes, what it leaves on disk and in MLflow, how it names its run."""

import json
import os
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from demo import scene
from mini_rlhf import seeds
from mini_rlhf.checkpoints import STATE, Checkpoints
from mini_rlhf.declines import stop_eval
from mini_rlhf.points import EvalPoint

from evalstopd.core.detectors import detector
from evalstopd.core.model import Eval
from evalstopd.report.replay.judge import first_stop
from tests.examples.needs import needs

EXAMPLES = Path(__file__).parents[2] / "examples"
SCORES = ("eval/gold_reward", "eval/gold_reward_stderr", "train/proxy_reward", "train/kl")


def point(step: int) -> EvalPoint:
    return EvalPoint(step, gold_reward=step / 100, gold_stderr=0.03, proxy_reward=1.0, kl=0.5)


def run(program: str, folder: Path, *arguments: str) -> str:
    """Run the program as a user would, outside Slurm, against an MLflow store of its own in `folder`."""
    needs("mlflow", "mini_rlhf.job")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW", "SLURM"))}
    environment |= {"PYTHONPATH": str(EXAMPLES), "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    command = [sys.executable, "-m", f"mini_rlhf.{program}", "--pace-s", "0", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def logged(folder: Path) -> tuple[dict[str, str], list[dict[str, float]]]:
    """Return the params and, by step, the metrics of the one run in the store."""
    with closing(sqlite3.connect(folder / "mlflow.db")) as store:
        params = dict(store.execute("select key, value from params"))
        rows = store.execute("select step, key, value from metrics order by step, key").fetchall()
    steps = sorted({step for step, _, _ in rows})
    return params, [{"step": s, **{key: value for step, key, value in rows if step == s}} for s in steps]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_real_training_leaves_what_a_trainer_leaves(tmp_path: Path) -> None:
    """Each eval is logged, the newest two checkpoints are whole, and file and MLflow tell the same scores."""
    needs("torch", "mini_rlhf.ppo")
    run("train", tmp_path, "--steps", "60", "--seed", "3", "--output-dir", "out/run")

    params, history = logged(tmp_path)
    assert names(tmp_path / "out/run") == ["checkpoint-40", "checkpoint-60"]
    newest = tmp_path / "out/run/checkpoint-60"
    assert names(newest) == ["config.json", "optimizer.pt", "policy.pt", STATE]
    assert [set(entry) for entry in history] == [{"step", *SCORES}] * 3
    assert json.loads((newest / STATE).read_text()) == {"global_step": 60, "log_history": history}
    expected = {"output_dir": "out/run", "seed": "3", "kl": "0.0", "save_total_limit": "2", "steps": "60"}
    assert expected.items() <= params.items()


def test_a_requeued_life_goes_on_as_if_nothing_happened(tmp_path: Path) -> None:
    """Training taken up from a checkpoint gives the very curve of training that was never interrupted."""
    ppo = needs("torch", "mini_rlhf.ppo")

    recipe = ppo.Recipe(steps=8, eval_every=2, eval_samples=64, pairs=100)
    first = ppo.Trainer(recipe)
    whole = []
    for evaluation in first.evaluations():
        whole.append(evaluation)
        if evaluation.step == 4:
            first.save(tmp_path)

    second = ppo.Trainer(recipe)
    second.load(tmp_path, 4)

    assert list(second.evaluations()) == whole[2:]
    assert len(whole) == 4


def test_the_size_of_an_eval_does_not_change_training() -> None:
    """Evaluations draw from a random stream of their own."""
    ppo = needs("torch", "mini_rlhf.ppo")

    small = ppo.Trainer(ppo.Recipe(steps=2, eval_every=1, eval_samples=8, pairs=100))
    large = ppo.Trainer(ppo.Recipe(steps=2, eval_every=1, eval_samples=16, pairs=100))
    assert list(small.evaluations()) != list(large.evaluations())

    weights = zip(small.policy.parameters(), large.policy.parameters(), strict=True)
    assert all(bool((a == b).all()) for a, b in weights)


def test_the_state_file_comes_last_and_rotation_after_it(tmp_path: Path) -> None:
    """While weights are written no state is there and no older checkpoint has gone yet."""
    checkpoints, seen = Checkpoints(tmp_path, limit=2), []

    def write_weights(folder: Path) -> None:
        seen.append((names(folder), len(names(tmp_path))))

    history = []
    for step in (20, 40, 60, 100):
        history.append(point(step))
        checkpoints.save(history, {}, write_weights)

    assert seen == [([], 1), ([], 2), ([], 3), ([], 3)]
    assert names(tmp_path) == ["checkpoint-100", "checkpoint-60"]


def test_a_half_written_checkpoint_is_passed_over_and_replaced(tmp_path: Path) -> None:
    """A life ended while saving: the one before is taken up, and saving again starts afresh."""
    checkpoints = Checkpoints(tmp_path, limit=2)
    assert checkpoints.newest_complete() is None
    checkpoints.save([point(20)], {}, Path.exists)
    torn = tmp_path / "checkpoint-40"
    torn.mkdir()
    (torn / "policy.pt").write_text("half")

    assert checkpoints.newest_complete() == (tmp_path / "checkpoint-20", [point(20)])

    checkpoints.save([point(20), point(40)], {}, Path.exists)
    assert names(torn) == ["config.json", STATE]


def test_rotation_leaves_other_folders_alone(tmp_path: Path) -> None:
    """Only the trainer's own numbered folders are deleted."""
    for other in ("checkpoint-best", "notes"):
        (tmp_path / other).mkdir()
    checkpoints = Checkpoints(tmp_path, limit=1)
    for step in (20, 40):
        checkpoints.save([point(step)], {}, Path.exists)

    assert names(tmp_path) == ["checkpoint-40", "checkpoint-best", "notes"]


def test_a_replay_is_taken_for_the_run_it_plays(tmp_path: Path) -> None:
    """It logs the recorded scores, rotates alike, takes up an earlier life, and says that it is a replay."""
    output = run("replay", tmp_path, "--kl", "0", "--seed", str(seeds.HACKING_SEEDS[0]), "--output-dir", "out")

    params, history = logged(tmp_path)
    assert "replay" in output.splitlines()[0]
    assert params["replay"] == "True"
    assert params["output_dir"] == "out"
    assert [entry["step"] for entry in history] == list(range(20, 601, 20))
    assert names(tmp_path / "out") == ["checkpoint-580", "checkpoint-600"]
    state = json.loads((tmp_path / "out/checkpoint-600" / STATE).read_text())
    assert state["log_history"] == history
    tensor = (tmp_path / "out/checkpoint-600/policy.safetensors").read_bytes()
    (header,) = struct.unpack("<Q", tensor[:8])
    end = json.loads(tensor[8 : 8 + header])["recorded_gold_reward"]["data_offsets"][1]
    assert len(tensor) == 8 + header + end == 8 + header + 4 * 30


def test_an_unknown_recording_is_named_with_those_there_are() -> None:
    """A seed that was not recorded ends in one line, not in a traceback."""
    replay = needs("mlflow", "mini_rlhf.replay")

    with pytest.raises(SystemExit, match="no run with kl 0 and seed 999 was recorded"):
        replay.find(0.0, 999)


@pytest.mark.parametrize(("kl", "seed"), seeds.CHOSEN)
def test_the_rule_of_the_survey_parts_the_recorded_runs(kl: float, seed: int) -> None:
    """k = 2 at min_delta 0.06 stops each hacking run after its best, ahead of a deep fall, and no other."""
    runs = json.loads((EXAMPLES / "mini_rlhf/curves.json").read_text())["runs"]
    (evals,) = [r["evals"] for r in runs if (r["recipe"]["kl"], r["recipe"]["seed"]) == (kl, seed)]
    scores = [entry["gold_reward"] for entry in evals]
    stop = stop_eval(scores, k=2, min_delta=0.06)

    if kl == seeds.HEALTHY_KL:
        assert stop is None
    else:
        assert stop is not None
        assert scores.index(max(scores)) + 1 < stop
        assert scores[-1] < 0.8 * max(scores)


@pytest.mark.parametrize("rule", [scene.RULE, "recommended:c=1", "recommended:c=5"])
@pytest.mark.parametrize("logged", [True, False])
@pytest.mark.parametrize(("kl", "seed"), seeds.CHOSEN)
def test_the_demos_rule_parts_the_recorded_runs(kl: float, seed: int, logged: bool, rule: str) -> None:
    """It stops each hacking run after its best and no other, standard errors or not, and so do its neighbours."""
    runs = json.loads((EXAMPLES / "mini_rlhf/curves.json").read_text())["runs"]
    (found,) = [r["evals"] for r in runs if (r["recipe"]["kl"], r["recipe"]["seed"]) == (kl, seed)]
    evals = [Eval(each["step"], each["gold_reward"], each["gold_stderr"] if logged else None) for each in found]
    stop = first_stop(detector(rule), evals)
    best = max(evals, key=lambda each: each.score)

    assert (stop is None) == (kl == seeds.HEALTHY_KL)
    assert stop is None or evals.index(best) < stop


def test_declines_must_be_successive_and_large_enough() -> None:
    """A rise, a tie or a fall within min_delta starts the count anew."""
    assert stop_eval([1.0, 0.9, 0.8], k=2, min_delta=0.06) == 3
    assert stop_eval([1.0, 0.9, 0.9, 0.8, 0.75, 0.6], k=2, min_delta=0.06) is None
    assert stop_eval([], k=2, min_delta=0.0) is None
