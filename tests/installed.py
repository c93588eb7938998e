"""Look for what a test needs without importing it: MLflow alone would cost each worker two seconds of a core."""

from importlib.metadata import version
from importlib.util import find_spec

import pytest

NO_MLFLOW = "MLFLOW TESTS SKIPPED: mlflow is not installed"


def need(library: str, reason: str) -> None:
    """Skip the test where a library is not installed."""
    if find_spec(library) is None:
        pytest.skip(reason)


def need_mlflow(least: tuple[int, int], what: str) -> None:
    """Skip the test where MLflow is older than the least version that has what is tested."""
    need("mlflow", NO_MLFLOW)
    found = tuple(map(int, version("mlflow").split(".")[:2]))
    if found < least:
        pytest.skip(f"MLFLOW TESTS SKIPPED: MLflow {found} {what}")
