"""MLflow servers of other kinds than the usual one that several files share, each once: a start takes seven seconds."""

import sys
from collections.abc import Iterator

import pytest
from demo.rig.mlflow_server import MlflowServer

from tests.adapters.mlflow.servers import PASSWORD, Proxied


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
