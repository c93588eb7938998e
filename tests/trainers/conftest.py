"""One site for the real training libraries: all their jobs at once on one cluster, judged by one daemon."""

import importlib.util
import os
import pwd
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.service import Service

from tests.e2e.site import Site
from tests.trainers.jobs import Jobs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "trainers"
LIBRARIES = ("torch", "transformers", "datasets", "trl", "lightning", "mlflow")
RULES = {
    "rung": "enforce",
    "rule": "recommended",
    "metrics": ["eval_accuracy", "eval_rewards/true_reward/mean", "val-core/*/mean_at_*", "val_acc*", "val/acc*"],
}
SCRIPTS = {
    "huggingface.py": ("--output-dir", "out-huggingface"),
    "huggingface.py, healthy": ("--output-dir", "out-healthy", "--reviews", "40000", "--steps", "1000"),
    "lightning_mlp.py": (),
    "trl_grpo.py": ("--output-dir", "out-trl"),
    "plain.py": ("--output-dir", "out-plain"),
}
"""The script's file, what is special about it, and its arguments."""
MODES = {'"eval_rewards/*"': "max", '"val_acc*"': "max", '"val/acc*"': "max"}


@pytest.fixture(scope="session")
def libraries() -> None:
    """The libraries are installed (`make trainers` does that); skips where they are not, and says so."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"TRAINERS NOT TESTED: not installed (extra `trainers`): {', '.join(missing)}")


@pytest.fixture(scope="session")
def site(libraries: None, cluster: Cluster, mlflow_server: MlflowServer, reachable_directory: Path) -> Iterator[Site]:
    """A daemon on the enforce rung that binds by seals alone: no comment names a run, no script knows of it."""
    found = "import importlib.util as found; assert found.find_spec('mlflow')"
    probe = cluster.as_user(users.ALICE, [sys.executable, "-c", found])
    if probe.returncode:
        pytest.skip(f"TRAINERS NOT TESTED: {users.ALICE} cannot run {sys.executable}: {probe.stderr.strip()[-200:]}")
    settings: dict[str, dict[str, object]] = {
        "rules": RULES,
        "rules.modes": MODES,
        "binding": {"mac_key": str(_key(cluster, reachable_directory))},
        "enforce": {"override": "a test", "notice_s": 0},
        "caps": {"stops": 1000, "stops_per_account": 1000, "gpu_share": 1.0, "breaker_decisions": 1000},
        "mlflow": {"tracking_uri": mlflow_server.uri, "time_limit_s": 5.0},
        "trust": {"open_mlflow": "a test"},
        "daemon": {"tick_s": 0.4},
    }
    keeper = ROOT / "evalstopd" / "keeper" / "keeper.py"
    with Service(reachable_directory / "trainers", cluster, sys.executable, keeper, settings) as service:
        running = Site(cluster, mlflow_server, service)
        service.start_daemon()
        yield running
        running.clear()


def _key(cluster: Cluster, folder: Path) -> Path:
    """Return the site key as the daemon's account has it."""
    path = folder / "trainers-mac-key"
    shutil.copy(cluster.site_key, path)
    account = pwd.getpwnam(users.DAEMON)
    os.chown(path, account.pw_uid, account.pw_gid)
    return path


@pytest.fixture(scope="session")
def jobs(site: Site) -> Jobs:
    """The examples as their users submit them, from a folder of the user's."""
    folder = site.cluster.work(users.ALICE)
    for file in EXAMPLES.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    return Jobs(site, folder)


@pytest.fixture(scope="session")
def submitted(jobs: Jobs) -> dict[str, str]:
    """All the examples' jobs, by script: they run side by side."""
    return {name: jobs.submit(name.partition(",")[0], *arguments) for name, arguments in SCRIPTS.items()}
