"""The real parts that end-to-end tests share: one small cluster, one MLflow server, the rig's users."""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.rig.packages import ensure_packages, obstacle
from demo.rig.places import new_reachable_directory
from demo.service import Service

from tests.e2e.site import METRIC, Site
from tests.e2e.warm_service import KEEPER, Loaded, WarmService, begin_loading

ACCOUNT = "ml"


@pytest.fixture(scope="session")
def reachable_directory() -> Iterator[Path]:
    """A folder that other users may enter; pytest closes its own whenever a session starts."""
    directory = new_reachable_directory("evsrig-")
    yield directory
    shutil.rmtree(directory)


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
def made_store(cluster: Cluster, reachable_directory: Path) -> Path:
    """A store as `evalstopd db upgrade` makes it under the daemon's account; each site starts with a copy."""
    service = Service(reachable_directory / "made", cluster, sys.executable, KEEPER, {})
    service.prepare()
    return service.database


@pytest.fixture(scope="session")
def loaded() -> Iterator[Loaded]:
    """A process that has loaded evalstopd, whose forks are daemons and commands."""
    with begin_loading() as running:
        yield running


@pytest.fixture
def make_site(
    loaded: Loaded,
    cluster: Cluster,
    mlflow_server: MlflowServer,
    reachable_directory: Path,
    made_store: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Site]]:
    """A maker of sites: `make_site(start=True, SECTION={...})` has a daemon in enforce mode unless told otherwise.

    A `cold` one starts an interpreter for the daemon and for each command, as a site does.
    """
    made: list[Site] = []
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]

    def make(*, start: bool = True, cold: bool = False, **changes: Mapping[str, object]) -> Site:
        settings: dict[str, dict[str, object]] = {
            "rules": {"rung": "enforce", "rule": "k-declines:k=2", "metric": METRIC, "mode": "max"},
            "enforce": {"override": "a test", "notice_s": 0},
            # The log alone tells no owner anything.
            "notify": {"kinds": ["log", "command"], "command": ["/bin/true"]},
            "caps": {"stops": 1000, "stops_per_account": 1000, "gpu_share": 1.0, "breaker_decisions": 1000},
            "mlflow": {"tracking_uri": mlflow_server.uri, "time_limit_s": 2.0},
            "trust": {"open_mlflow": "a test"},
            # Tests count passes, those whose trouble was logged before among them.
            "daemon": {"tick_s": 0.4, "log_level": "DEBUG"},
        }
        for section, values in changes.items():
            settings.setdefault(section, {}).update(values)
        place = reachable_directory / name
        service = (
            Service(place, cluster, sys.executable, KEEPER, settings, made_store)
            if cold
            else WarmService(loaded, place, cluster, settings, made_store)
        )
        service.__enter__()
        made.append(Site(cluster, mlflow_server, service))
        if start:
            service.start_daemon()
        return made[-1]

    yield make
    for site in made:
        site.service.stop()
        site.clear()
        site.store.close()
