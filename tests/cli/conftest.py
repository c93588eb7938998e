"""How tests call the command line: cold, as a user does, or warm, where only what it says counts."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.cli.warm import commands

Run = Callable[..., subprocess.CompletedProcess[str]]


def own(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: ours without evalstopd's settings, with these variables."""
    return {key: value for key, value in os.environ.items() if not key.startswith("EVALSTOPD_")} | dict(variables)


def run_cold(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an interpreter that starts for it."""
    return subprocess.run(
        [sys.executable, "-m", "evalstopd", *arguments], env=own(variables), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Run commands in forks of a process that has loaded the command line."""
    with commands() as warm:
        yield lambda *arguments, **variables: warm.run(arguments, own(variables))
