"""MLflow servers that several files share: real ones, each begun once, and small stand-ins."""

from collections.abc import Iterator

import pytest
from demo.rig.mlflow_server import MlflowServer

from tests.adapters.mlflow.servers import PASSWORD, WarmProxied
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Standin
from tests.installed import need
from tests.warm_mlflow import Warm, WarmMlflow


@pytest.fixture(scope="session")
def guarded(loaded_mlflow: WarmMlflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server that lets nobody in without a login."""
    need("flask_wtf", "MLFLOW TESTS SKIPPED: basic-auth needs Flask-WTF (mlflow[auth])")
    with Warm(loaded_mlflow, tmp_path_factory.mktemp("guarded"), password=PASSWORD) as server:
        yield server


@pytest.fixture(scope="session")
def proxied(loaded_mlflow: WarmMlflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server that keeps the runs' artifacts itself."""
    with WarmProxied(loaded_mlflow, tmp_path_factory.mktemp("proxied")) as server:
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
