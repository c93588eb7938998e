"""Skip loudly where a library of the examples is missing; a module of our own must be there."""

import importlib
from typing import Any

import pytest


def needs(library: str, module: str) -> Any:
    """Return the example's module, or skip the test where the library it stands on is not installed."""
    pytest.importorskip(library, reason=f"EXAMPLES' TEST SKIPPED: {library} is not installed")
    return importlib.import_module(module)
