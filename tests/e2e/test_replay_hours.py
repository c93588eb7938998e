"""Replay of runs on a real MLflow server, joined to the accounting of the real cluster they ran on."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer

from tests.e2e.site import FALL, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]

FORMAT = "JobID,JobIDRaw,Submit,Elapsed,State,AllocTRES,Account,User,Cluster"


def replayed(server: MlflowServer, settings: Path, accounting: Path) -> dict:  # type: ignore[type-arg]
    settings.write_text(f'[mlflow]\ntracking_uri = "{server.uri}"\n')
    asked = ["replay", "mlflow:Default", "--config", str(settings), "--sacct", str(accounting)]
    command = [sys.executable, "-m", "evalstopd", *asked, "--rule", "k-declines:k=2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["accounting"]  # type: ignore[no-any-return]


def test_both_forms_of_accounting_join_each_task_of_an_array_to_its_own_run(
    make_site: Callable[..., Site], cluster: Cluster, mlflow_server: MlflowServer, tmp_path: Path
) -> None:
    """The last task's raw id is the array's own; two GPUs a task, from the stop to the last of a run's evals."""
    site = make_site(start=False)
    options = ("--array=0-1", "--gpus=2", "--nodes=1")
    array = site.train(users.ALICE, FALL, *options, pace_s=0.5, more="--linger-s 1")
    tasks = [f"{array}_0", f"{array}_1"]
    site.wait(lambda: [site.accounted(task) for task in tasks] == ["COMPLETED"] * 2, "both tasks over", 120)
    table, data = tmp_path / "sacct.txt", tmp_path / "sacct.json"
    kept = ("--allocations", "--duplicates", "--allusers", "--jobs", array)
    table.write_text(cluster.run("sacct", "--parsable2", f"--format={FORMAT}", *kept))
    data.write_text(cluster.run("sacct", "--json", *kept))

    for file in (table, data):
        found = replayed(mlflow_server, tmp_path / "evalstopd.toml", file)
        assert found["joined"] == 2
        everything, account = found["rows"]
        assert (everything["jobs"], account["account"]) == (2, "ml")
        # Eight evals half a second apart and a second of rest, on two GPUs, twice; three evals come after the stop.
        assert everything["gpu_hours"] >= 2 * 2 * 4.5 / 3600
        assert everything["gpu_hours_saved"] >= 2 * 2 * 1.5 / 3600
        assert everything["gpu_hours_saved"] < everything["gpu_hours"]
