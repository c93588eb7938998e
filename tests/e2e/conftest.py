"""The real parts that end-to-end tests share: one small cluster, one MLflow server, the rig's users."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.rig.packages import ensure_packages, obstacle

ACCOUNT = "ml"


@pytest.fixture(scope="session")
def reachable_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that other users may enter: pytest keeps its own to the user who runs it."""
    directory = tmp_path_factory.mktemp("rig")
    for folder in (directory, *directory.parents):
        if folder.name.startswith("pytest-"):
            folder.chmod(folder.stat().st_mode | 0o011)
    directory.chmod(0o755)
    return directory


@pytest.fixture(scope="session")
def slurm_machine() -> None:
    """A machine that can run Slurm, with its packages installed; skips where it cannot be one."""
    if reason := obstacle():
        pytest.skip(f"SLURM TESTS SKIPPED: {reason}")
    ensure_packages(lambda line: print(line, file=sys.stderr))


@pytest.fixture(scope="session")
def slurm_users(slurm_machine: None) -> None:
    """The rig's users exist."""
    users.ensure_users()


@pytest.fixture(scope="session")
def cluster(slurm_users: None, reachable_directory: Path) -> Iterator[Cluster]:
    """Two nodes of four GPUs; alice and bob may submit, the daemon's user is Operator."""
    with Cluster(reachable_directory / "slurm", nodes=2, gpus=4) as running:
        running.add_account(ACCOUNT)
        running.add_user(users.ALICE, ACCOUNT)
        running.add_user(users.BOB, ACCOUNT)
        running.add_user(users.DAEMON, ACCOUNT, admin_level="Operator")
        yield running


@pytest.fixture(scope="session")
def mlflow_server(reachable_directory: Path) -> Iterator[MlflowServer]:
    """A real tracking server; tests that take it away must bring it back."""
    pytest.importorskip("mlflow", reason="MLFLOW TESTS SKIPPED: mlflow is not installed")
    with MlflowServer(sys.executable, reachable_directory / "mlflow") as server:
        yield server
