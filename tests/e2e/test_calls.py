"""How much a tick costs a real Slurm and a real MLflow: calls, not times."""

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource
from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import PROGRAMS, ProcessRunner
from evalstopd.core.model import Mode, Rung
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Ports
from evalstopd.store.memory import MemoryStore
from tests.e2e.site import METRIC, RISE, Site
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import RULES, FakeClock, FakeGate, FakeNotifier, FakeSwitch

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]


def test_a_tick_with_nothing_new_is_one_scheduler_call(make_site, cluster: Cluster) -> None:  # type: ignore[no-untyped-def]
    site: Site = make_site(start=False)
    jobs = [site.train(users.ALICE, RISE, "--gpus=2", "--nodes=1", pace_s=0.2) for _ in range(3)]
    slurm = SlurmCluster(run=ProcessRunner(conf=cluster.env["SLURM_CONF"], path=PROGRAMS))
    http = Http(Server(site.mlflow.uri))
    clock, store = FakeClock(), MemoryStore()
    tracker = MlflowSource(http, clock)
    ports = Ports(
        clock, slurm, tracker, tracker, FakeKeeper(), store, FakeNotifier(), FakeSwitch(), tracker, FakeGate()
    )
    rules = RULES.__class__(rung=Rung.OBSERVE, metric=METRIC, mode=Mode.MAX, tick_s=30.0)
    loop = Loop(ports, Stance(rules))

    def all_read() -> bool:
        clock.time_s += 30
        return loop.tick().good and sorted(w.evals for w in store.recent(9)) == [8] * len(jobs)

    site.wait(all_read, "every eval of every job read")
    clock.time_s += 1
    before = slurm.calls
    report = loop.tick()
    http.close()

    assert slurm.calls - before == 1
    assert report.counts["watched"] == len(jobs)
    assert report.counts["due"] == 0
