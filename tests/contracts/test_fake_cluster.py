"""The loop's stand-in for Slurm keeps to the contract that the real one keeps to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from evalstopd.ports import Cluster
from tests.contracts.cluster_contract import ClusterContract, ClusterWorld
from tests.fakes.cluster import FakeCluster


class FakeClusterWorld:
    """A stand-in with a clock that goes on at each wait."""

    alice = 1001
    bob = 1002

    def __init__(self) -> None:
        self._now_s = 1000.0
        self._fake = FakeCluster(lambda: self._now_s, gpus=8)

    @property
    def cluster(self) -> Cluster:
        return self._fake

    def submit(self, uid: int, gpus: int = 1, comment: str = "") -> str:
        return self._fake.submit(uid, gpus, comment)

    def submit_fixed(self, uid: int) -> str:
        job_id = self.submit(uid)
        self._fake.fixed.add(job_id)
        return job_id

    def submit_waiting(self, uid: int) -> str:
        return self._fake.submit(uid, self._fake.gpus + 1)

    def submit_array(self, uid: int, tasks: int) -> tuple[str, ...]:
        array = self._fake.last_id + 1
        return tuple(self._fake.submit(uid, 1, job_id=f"{array}_{task}") for task in range(tasks))

    def finish(self, job_id: str) -> None:
        self._fake.finish(job_id)

    def requeue(self, job_id: str) -> None:
        self._now_s += 1
        self._fake.requeue(job_id)
        self._fake.start()

    def signals(self, job_id: str) -> list[str]:
        return [name for signalled, name in self._fake.signalled if signalled == job_id]

    def until(self, condition: Callable[[], bool]) -> None:
        assert condition()

    @contextmanager
    def down(self) -> Iterator[None]:
        self._fake.down = True
        yield
        self._fake.down = False


class TestFakeCluster(ClusterContract):
    """The contract over the stand-in."""

    @pytest.fixture
    def world(self) -> ClusterWorld:
        return FakeClusterWorld()
