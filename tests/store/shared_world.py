"""The loop's stand-ins in one file, so that several daemon processes have the same cluster, tracker and keeper."""

import fcntl
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.cluster import FakeCluster
from tests.fakes.keeper import FakeKeeper
from tests.fakes.tracker import FakeTracker
from tests.fakes.world import FakeGate

Parts = dict[str, Any]


def make_world(file: Path, cluster: str = "c") -> None:
    parts: Parts = {"cluster": FakeCluster(time.time, name=cluster), "tracker": FakeTracker(), "keeper": FakeKeeper()}
    file.write_bytes(pickle.dumps(parts | {"gate": FakeGate()}))


@contextmanager
def opened(file: Path) -> Iterator[Parts]:
    """Give the world's parts to one process at a time, and keep what it changed."""
    with file.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        parts = pickle.load(held)
        yield parts
        held.seek(0)
        held.truncate()
        pickle.dump(parts, held)


class Shared:
    """One part of the world as a port."""

    def __init__(self, file: Path, part: str) -> None:
        self._file, self._part = file, part

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            with opened(self._file) as parts:
                return getattr(parts[self._part], name)(*arguments)

        return call
