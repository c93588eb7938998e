"""MLflow servers that several files share: real ones once, for a start takes seven seconds, and small stand-ins."""

import sys
from collections.abc import Iterator

import pytest
from demo.rig.mlflow_server import MlflowServer

from tests.adapters.mlflow.servers import PASSWORD, Proxied
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Standin


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server that lets nobody in without a login."""
    pytest.importorskip("flask_wtf", reason="MLFLOW TESTS SKIPPED: basic-auth needs Flask-WTF (mlflow[auth])")
    with MlflowServer(sys.executable, tmp_path_factory.mktemp("guarded"), password=PASSWORD) as server:
        yield server


@pytest.fixture(scope="session")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server that keeps the runs' artifacts itself."""
    pytest.importorskip("mlflow", reason="MLFLOW TESTS SKIPPED: mlflow is not installed")
    with Proxied(sys.executable, tmp_path_factory.mktemp("proxied")) as server:
        yield server


@pytest.fixture
def small() -> SmallMlflow:
    """What the stand-in answers from."""
    return SmallMlflow()


@pytest.fixture
def server(small: SmallMlflow) -> Iterator[Standin]:
    """A server over loopback that is quick to start and does as it is told."""
    with Standin(small) as server:
        yield server
