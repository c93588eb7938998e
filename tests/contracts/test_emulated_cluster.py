"""The simulator's cluster keeps to the contract that the real one keeps to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from evalstopd_sim.drive import Scheduler
from evalstopd_sim.emulated.cluster import EmulatedCluster, User
from evalstopd_sim.emulated.simulation import Simulation
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.truth import TrueJob

from evalstopd.core.policies import policy
from evalstopd.ports import Cluster
from tests.contracts.cluster_contract import ClusterContract, ClusterWorld

GPUS = 8


@dataclass(slots=True)
class EmulatedClusterWorld:
    """A simulation that goes on by a second where something is submitted or requeued."""

    alice: int = 1001
    bob: int = 1002
    owners: dict[str, int] = field(default_factory=dict)
    requeue_delay_s: float = 0.0
    world: Simulation = field(init=False)
    emulated: EmulatedCluster = field(init=False)

    def __post_init__(self) -> None:
        self.world = Simulation((), Scheduler(policy("fifo")), _options(self.requeue_delay_s))
        self.emulated = EmulatedCluster(self.world, owner_of=lambda r: User(self.owners[r.job_id], "someone"))

    @property
    def cluster(self) -> Cluster:
        return self.emulated

    def submit(self, uid: int, gpus: int = 1, comment: str = "") -> str:
        job_id = str(len(self.owners) + 1)
        self.owners[job_id] = uid
        self.world.submit(TrueJob(job_id, "rlhf", self.world.now_s(), gpus, 1e6, 1e6))
        self.world.advance(self.world.now_s() + 1)
        if comment:
            self.emulated.set_comment(job_id, comment)
        return job_id

    def submit_fixed(self, uid: int) -> str:
        job_id = self.submit(uid)
        self.emulated.fixed.add(job_id)
        return job_id

    def submit_waiting(self, uid: int) -> str:
        return self.submit(uid, GPUS + 1)

    def submit_array(self, uid: int, tasks: int) -> tuple[str, ...]:
        """The emulated cluster knows no arrays: their tasks are jobs."""
        return tuple(self.submit(uid) for _ in range(tasks))

    def finish(self, job_id: str) -> None:
        self.world.finish(self.world.records[job_id])

    def requeue(self, job_id: str) -> None:
        self.world.advance(self.world.now_s() + 1)
        self.world.requeue(self.world.records[job_id])

    def signals(self, job_id: str) -> list[str]:
        return [name for signalled, name in self.emulated.signals if signalled == job_id]

    def until(self, condition: Callable[[], bool]) -> None:
        assert condition()

    @contextmanager
    def down(self) -> Iterator[None]:
        yield


def _options(requeue_delay_s: float = 0.0) -> ClusterOptions:
    return ClusterOptions(GPUS, preemption_overhead_s=0.0, requeue_delay_s=requeue_delay_s)


@pytest.mark.parametrize(("released_after_s", "starts_after_s"), [(0, 120), (60, 120), (200, 200)])
def test_a_held_job_starts_once_it_is_released_and_may(released_after_s: int, starts_after_s: int) -> None:
    """As with Slurm, a requeued job waits for a while, held or not; it comes into the queue once."""
    emulated = EmulatedClusterWorld(requeue_delay_s=120.0)
    job_id = emulated.submit(emulated.alice)
    held_s = emulated.world.now_s()
    emulated.cluster.requeue_hold(job_id)
    emulated.world.advance(held_s + released_after_s)
    emulated.cluster.release(job_id)
    emulated.world.advance(held_s + 300)
    job = emulated.cluster.look([job_id])[job_id]

    assert (job.state, job.started_s, job.restarts) == ("RUNNING", int(held_s + starts_after_s), 1)


class TestEmulatedCluster(ClusterContract):
    """The contract, but for what is not emulated: a scheduler that does not answer, and priorities."""

    test_nice_is_set_for_those_that_wait_and_whoever_does_not_is_no_error = None

    test_a_scheduler_that_is_away_is_unavailable_and_back_afterwards = None

    @pytest.fixture
    def world(self) -> ClusterWorld:
        return EmulatedClusterWorld()
