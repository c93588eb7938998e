"""`reproduce --executor slurm` on a real cluster: the seeds run as a job array, and the figures are the same."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

WHAT = ["reproduce", "--experiment", "gao", "--seeds", "2"]


@pytest.fixture
def shared(cluster: Cluster, reachable_directory: Path) -> Path:
    """A folder of alice's that the nodes share; skips where she cannot use submitit."""
    probe = cluster.as_user(users.ALICE, [sys.executable, "-c", "import submitit"])
    if probe.returncode:
        pytest.skip(f"SLURM TESTS SKIPPED: {users.ALICE} cannot use submitit: {probe.stderr.strip()[-200:]}")
    folder = Path(tempfile.mkdtemp(dir=reachable_directory))
    subprocess.run(["chown", users.ALICE, str(folder)], check=True)
    return folder


def call(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "evalstopd", *WHAT, *arguments]
    return cluster.as_user(users.ALICE, command, env=environment, timeout_s=240)


def accounted(cluster: Cluster) -> list[str]:
    ran = cluster.run("sacct", "-n", "-X", "-P", "--name=evalstopd-reproduce", "-o", "JobID,State")
    return sorted(line.partition("_")[2] for line in ran.split())


@pytest.mark.slurm
@pytest.mark.slow
def test_the_seeds_run_as_an_array_and_the_files_are_the_same(cluster: Cluster, shared: Path) -> None:
    there, here = shared / "there", shared / "here"
    arrayed = call(cluster, "--executor", "slurm", "--slurm", "mem=500", "--out", str(there))
    local = call(cluster, "--jobs", "1", "--out", str(here))

    assert arrayed.returncode == 0, arrayed.stderr
    assert local.returncode == 0, local.stderr
    for name in ("report.md", "gao/table.csv", "gao/table.json"):
        assert (there / name).read_bytes() == (here / name).read_bytes()
    expected, end = ["0|COMPLETED", "1|COMPLETED"], time.monotonic() + 60
    # Accounting is behind the queue by seconds.
    while accounted(cluster) != expected and time.monotonic() < end:
        time.sleep(0.5)
    assert accounted(cluster) == expected


@pytest.mark.slurm
def test_an_array_that_slurm_does_not_take_is_one_line(cluster: Cluster, shared: Path) -> None:
    done = call(cluster, "--executor", "slurm", "--slurm", "partition=nowhere", "--out", str(shared / "out"))

    assert done.returncode == 78
    assert "error: --executor slurm: " in done.stderr
    assert not (shared / "out" / "report.md").exists()
