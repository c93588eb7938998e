"""Real parts that tests of several folders share."""

import gc
from collections.abc import Generator, Iterator

import pytest
from demo.rig.mlflow_server import MlflowServer
from hypothesis import HealthCheck, settings

from tests.e2e.fixtures import (
    cluster,
    loaded,
    made_store,
    make_site,
    reachable_directory,
    slurm_machine,
    slurm_users,
)
from tests.installed import NO_MLFLOW, need
from tests.warm_mlflow import Warm, WarmMlflow, warm_mlflow

# One cluster for the folders that need one: fixtures imported twice would start two.
__all__ = ["cluster", "loaded", "made_store", "make_site", "reachable_directory", "slurm_machine", "slurm_users"]

# Looking for garbage as often as Python does takes more than half of the time in which a worker collects the tests.
gc.set_threshold(50_000, 20, 20)
# Time limits of hypothesis measure the machine, which may be busy, not the code.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("steady"), max_examples=10_000)
# A mutant must meet the same examples in each run, or its fate is chance.
settings.register_profile("mutation", settings.get_profile("steady"), max_examples=40, derandomize=True, database=None)
settings.load_profile("steady")

# What takes longest begins first, so that nothing long is left when all else is done.
LONGEST = (
    "test_main_job", "test_booted_units", "test_priorities", "test_hanging_parts", "test_undo", "test_real_ladder",
    "test_models", "test_embedded_demo", "test_registry", "test_compare", "test_preempt", "test_hanging_postgresql",
    "test_slurm_cluster", "test_proofs", "test_floods", "test_mlflow2", "test_datasets", "test_stop_actions",
    "test_plugin", "test_priorities_and_stops", "test_pair",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the properties, to be run alone and longer (`make nightly`), and the groups that share real parts.

    A file's tests on real parts stay together and in order: they share a cluster and count what it holds.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("properties")
        if any(map(item.get_closest_marker, ("slurm", "mlflow"))) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def pytest_collection_finish() -> None:
    """Never look for garbage among the thousands of tests themselves."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse to spread what shares real parts: its group is behind the test's name, or pytest-xdist knows of none."""
    if item.config.getoption("loadgroup", default=False) and item.get_closest_marker("xdist_group"):
        assert "@" in item.nodeid.rpartition("]")[2], "pytest-xdist does not keep groups together with this pytest"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep hostile text that a test logged from ending the worker: reports travel as UTF-8, which has no halves."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def loaded_mlflow() -> Iterator[WarmMlflow]:
    """A process that has loaded MLflow, whose forks are servers."""
    need("mlflow", NO_MLFLOW)
    with warm_mlflow() as warm:
        yield warm


@pytest.fixture(scope="session")
def mlflow_server(loaded_mlflow: WarmMlflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A real tracking server; tests that take it away must bring it back."""
    with Warm(loaded_mlflow, tmp_path_factory.mktemp("mlflow")) as server:
        yield server
