"""A training job on a real cluster and a real MLflow server is found both ways: job to run, run to job."""

import json
import shutil
import sys
import urllib.request
from pathlib import Path

import pytest
from demo.rig import processes, users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from mini_rlhf import seeds

EXAMPLES = Path(__file__).parents[2] / "examples"
WISH = "evalstop=keep;\n999|RUNNING"


@pytest.fixture
def examples(cluster: Cluster, reachable_directory: Path) -> Path:
    """The training scripts where jobs of other users can read them; skips where their Python cannot run."""
    probe = cluster.as_user(users.ALICE, [sys.executable, "-c", "import mlflow"])
    if probe.returncode:
        pytest.skip(f"SLURM TESTS SKIPPED: {users.ALICE} cannot run {sys.executable}: {probe.stderr.strip()}")
    return Path(shutil.copytree(EXAMPLES, reachable_directory / "examples", dirs_exist_ok=True))


def comment(cluster: Cluster, job: str) -> str:
    return cluster.squeue("-j", job, "-O", "Comment:|").rstrip("\n").removesuffix("|")


def run_of(server: MlflowServer, run_id: str) -> dict[str, str]:
    with urllib.request.urlopen(f"{server.uri}/api/2.0/mlflow/runs/get?run_id={run_id}", timeout=10) as answer:
        return {tag["key"]: tag["value"] for tag in json.load(answer)["run"]["data"]["tags"]}


@pytest.mark.slurm
@pytest.mark.mlflow
def test_each_task_of_an_array_names_its_own_run(cluster: Cluster, mlflow_server: MlflowServer, examples: Path) -> None:
    """Two tasks, the last one too, keep the owner's words in their comments and add a run of their own."""
    exports = f"ALL,PYTHON={sys.executable},EXAMPLES={examples},PROGRAM=replay"
    array = cluster.sbatch(
        users.ALICE,
        (EXAMPLES / "mini_rlhf/job.sh").read_text().replace('"$@"', f"--seed {seeds.HACKING_SEEDS[0]}"),
        "--array=0-1",
        "--gres=gpu:1",
        f"--comment={WISH}",
        f"--export={exports},MLFLOW_TRACKING_URI={mlflow_server.uri}",
    )
    tasks = [f"{array}_0", f"{array}_1"]

    linked = processes.wait_until(
        lambda: all(comment(cluster, task).startswith("mlflow_run=") for task in tasks), 90, poll_s=0.5
    )
    comments = [comment(cluster, task) for task in tasks]
    raw_ids = [cluster.squeue("-j", task, "-O", "JobID").strip() for task in tasks]
    cluster.run("scancel", array)

    assert linked, comments
    runs = []
    for text in comments:
        word, _, rest = text.partition(" ")
        assert rest == WISH
        runs.append(word.removeprefix("mlflow_run="))
    assert runs[0] != runs[1]
    tags = [run_of(mlflow_server, run) for run in runs]
    assert [tag["slurm.job_id"] for tag in tags] == raw_ids
    assert {tag["slurm.cluster"] for tag in tags} == {cluster.name}
