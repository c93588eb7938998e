"""Floods: "1e6 points, 1e5 keys, 1e4 runs claiming one job", and one run's flood is quarantined alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.adapters.mlflow.http import Answer, Http
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource
from evalstopd.core.caps import UNLIMITED
from evalstopd.errors import PastCaps
from evalstopd.ports import Ports, Span
from evalstopd.report.audit.gather import audit_report
from evalstopd.store.memory import MemoryStore
from tests.adapters.mlflow.tracker import Tracker
from tests.fakes.world import RISE_AND_FALL, World
from tests.hostile import seed
from tests.loop.test_proofs import SEALS, put_seal, start
from tests.loop.told import remarks

LIMIT_S = 4.0
CAPS = Caps(points=20_000)


class CountingHttp(Http):
    """Counts the questions about each run."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.asked: list[str] = []

    def get(self, path: str, params: Mapping[str, str]) -> Answer:
        self.asked.append(params.get("run_id", ""))
        return super().get(path, params)


class Site:
    """The emulated cluster over a real MLflow server, with a time limit that a small machine keeps."""

    def __init__(self, server: MlflowServer) -> None:
        self.world = World()
        self.user = Tracker(server.uri)
        self.http = CountingHttp(Server(server.uri, timeout_s=LIMIT_S, max_bytes=8 * 2**20))
        self.source = MlflowSource(self.http, self.world.clock, CAPS)

    @property
    def ports(self) -> Ports:
        return replace(self.world.ports(), metrics=self.source, runs=self.source)

    def train(self, uid: int) -> tuple[str, str]:
        """Submit a job with a run of its own; return both."""
        run_id = self.user.make_run({}, {"output_dir": "out"})
        job = self.world.train(run_id, uid)
        tag = {"run_id": run_id, "key": "slurm.job_id", "value": str(self.world.cluster.jobs[job].raw_id)}
        self.user.call("/runs/set-tag", tag)
        return job, run_id

    def log(self, job: str, run_id: str, step: int, score: float) -> None:
        self.user.log(run_id, "score", [(step, score, int(self.world.clock.time_s * 1000))])
        self.world.keeper.save(f"{self.world.cluster.jobs[job].work_dir}/out", step, keep_last=100)
        self.world.tick(ports=self.ports)

    def tick_until(self, holds: Callable[[], object]) -> None:
        """A small machine's server may be silent to all while it answers the flood: that costs passes, nothing else."""
        for _ in range(30):
            if holds():
                return
            self.world.tick(ports=self.ports)
        raise AssertionError("not within 30 passes")

    def close(self) -> None:
        self.http.close()
        self.user.http.close()


@pytest.fixture
def site(mlflow_server: MlflowServer) -> Iterator[Site]:
    site = Site(mlflow_server)
    yield site
    site.close()


def a_million_points(server: MlflowServer, run_id: str) -> None:
    seed.points(server.database, run_id, "score", 1_000_000)


def a_hundred_thousand_keys(server: MlflowServer, run_id: str) -> None:
    seed.keys(server.database, run_id, 100_000)


@pytest.mark.mlflow
@pytest.mark.slow
@pytest.mark.parametrize("flood", [a_million_points, a_hundred_thousand_keys])
def test_a_flooded_run_is_quarantined_alone(
    site: Site, mlflow_server: MlflowServer, flood: Callable[[MlflowServer, str], None]
) -> None:
    """ "1e6 points, 1e5 keys": the flooded run's job is left alone, which is said once; its neighbour is judged."""
    world = site.world
    flooded, flooded_run = site.train(1002)
    calm, calm_run = site.train(1001)
    flood(mlflow_server, flooded_run)
    for number, score in enumerate(RISE_AND_FALL, 1):
        site.log(calm, calm_run, number * 10, score)
    site.tick_until(lambda: world.cluster.cancelled and remarks(world))
    asked = site.http.asked.count(flooded_run)
    for _ in range(3):
        world.tick(ports=site.ports)

    assert world.cluster.cancelled == [(calm, 0)]
    assert remarks(world) == [(flooded, "quarantine-run")]
    assert site.http.asked.count(flooded_run) == asked
    assert isinstance(world.store, MemoryStore)
    counted = audit_report(world.store, Span(0, 1e12), "test").summary.remarks
    assert counted["quarantined"] == 1
    world.tick(900.0, ports=site.ports)
    assert site.http.asked.count(flooded_run) > asked


@pytest.mark.mlflow
def test_a_stranger_who_names_my_run_and_its_longest_metric_quarantines_himself(
    site: Site, mlflow_server: MlflowServer
) -> None:
    """A training loss may well have more points than the caps: asking for it keeps nobody else from being judged."""
    world = site.world
    mine, run_id = site.train(1001)
    seed.points(mlflow_server.database, run_id, "loss", CAPS.points + 1)
    his = world.cluster.submit(1002, 8, f"mlflow_run={run_id} evalstop_metric=loss")
    for number, score in enumerate(RISE_AND_FALL, 1):
        site.log(mine, run_id, number * 10, score)
    site.tick_until(lambda: world.cluster.cancelled)

    assert world.cluster.cancelled == [(mine, 0)]
    assert {job for job, _ in remarks(world)} == {his}


def test_a_flood_of_runs_costs_the_job_that_they_name_and_no_other() -> None:
    """ "1e4 runs claiming one job": a job that named its run in its comment is not even touched by them."""
    world = World(replace(SEALS, caps=UNLIMITED))
    flooded, calm = start(world, "r1"), start(world, "r2")
    commented = world.train("r3")
    put_seal(world, flooded, "r1")
    put_seal(world, calm, "r2")
    for number in range(10_000):
        for victim in ("r1", "r3"):
            tags = {**world.tracker.runs[victim].tags, "slurm.cluster": "c"}
            world.tracker.add_run(f"flood-{victim}-{number}").tags |= tags
    for number, score in enumerate(RISE_AND_FALL, 1):
        for job, run_id in ((flooded, "r1"), (calm, "r2"), (commented, "r3")):
            world.evaluate(job, run_id, number, score)
        world.tick()
    world.tick()

    assert sorted(world.cluster.cancelled) == [(calm, 0), (commented, 0)]
    assert remarks(world) == [(flooded, "quarantine-runs")]


@pytest.mark.mlflow
def test_ten_thousand_runs_that_name_a_job_are_one_small_answer_and_refuse_that_job_alone(
    site: Site, mlflow_server: MlflowServer
) -> None:
    """ "1e4 runs claiming one job", with every tag of the true one, its seal too: on the real server's own search."""
    named = {"slurm.job_id": "1001", "slurm.cluster": "c", "evalstop.mac": "v1:copied"}
    calm = site.user.make_run({**named, "slurm.job_id": "1002"}, {})
    seed.runs(mlflow_server.database, site.user.make_run(named, {}), 10_000)
    found = site.source.naming("c", [1001, 1002, 1003])
    calms = found[1002]

    assert isinstance(found[1001], PastCaps)
    assert isinstance(calms, tuple)
    assert [run.run_id for run in calms] == [calm]
    assert found[1003] == ()
