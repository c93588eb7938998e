"""What Prometheus scrapes from a real daemon process: figures of all kinds, and no word of a user's."""

import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalstopd import errors, ports
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource
from evalstopd.core.intent import State
from evalstopd.meters import measured
from tests.adapters.mlflow.small_mlflow import SmallMlflow
from tests.adapters.mlflow.standin import Standin, raw
from tests.fakes.registry import FakeRegistry
from tests.fakes.tracker import FakeModel
from tests.fakes.world import RISE_AND_FALL, World
from tests.process.test_reload import Running, at_work
from tests.store.shared_world import opened

exposition = pytest.importorskip("prometheus_client", reason="METRICS TESTS SKIPPED: no prometheus-client")
parser = pytest.importorskip("prometheus_client.parser", reason="METRICS TESTS SKIPPED: no prometheus-client")
prometheus = pytest.importorskip("evalstopd.meters.prometheus", reason="METRICS TESTS SKIPPED: no prometheus-client")
KINDS = (
    ports.Cluster,
    ports.MetricsSource,
    ports.RunFinder,
    ports.Gate,
    ports.RunWriter,
    ports.Keeper,
    ports.Store,
    ports.Notifier,
    ports.Models,
)
ALLOWED = {
    "result": {"good", "bad", "standby", "made", "refused", "later"},
    "scope": {"site", "account", "owner"},
    "verdict": {"keep going", "declining", "stop"},
    "state": {state.value for state in State},
    "port": {*measured.MEASURED, *measured.OPTIONAL},
    "call": {verb for kind in KINDS for verb in vars(kind) if not verb.startswith("_")},
    "error": {name for name in vars(errors) if name[0].isupper()},
    "why": {"quarantined", "refused"},
    "act": {
        "planned", "warned", "warned early", "pinned", "promoted", "signalled", "cancelled", "held", "confirmed",
        "undone", "vetoed", "abandoned", "held by caps", "would be stopped", "refused", "not told", "perhaps told",
    },
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Scraped(Running):
    """A daemon that can be scraped."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        super().__init__(folder)

    def configure(self, rung: str = "enforce", more: str = "", **settings: object) -> None:  # type: ignore[override]
        super().configure(rung, more=f"[metrics]\nport = {self.port}\n{more}")

    def page(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def figures(self) -> dict[tuple[str, tuple[str, ...]], float]:
        families = parser.text_string_to_metric_families(self.page())
        return {
            (each.name, tuple(sorted(each.labels.values()))): each.value
            for family in families
            for each in family.samples
        }


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Scraped]:
    yield from at_work(Scraped(tmp_path))


def test_a_stop_is_told_in_figures(daemon: Scraped) -> None:
    job = daemon.train("r1")
    with opened(daemon.world) as parts:
        held = parts["cluster"].jobs[job]
        parts["cluster"].jobs[job] = replace(held, limit_end_s=int(time.time()) + 36_000, name="Ada's run")
    daemon.fall(job, "r1")
    daemon.wait(lambda: daemon.figures().get(("evalstopd_intents", ("confirmed",))) == 1.0, "the stop is confirmed")
    found = daemon.figures()

    assert found["evalstopd_leads", ()] == 1.0
    assert found["evalstopd_ticks_total", ("good",)] >= 2
    assert found["evalstopd_evals_total", ()] == 7
    assert found["evalstopd_verdicts_total", ("stop",)] == 1
    assert [found["evalstopd_acts_total", (act,)] for act in ("planned", "promoted", "cancelled", "confirmed")] == [
        1
    ] * 4
    assert found["evalstopd_intents", ("warned",)] == 0
    assert 70 < found["evalstopd_freed_gpu_hours_total", ()] <= 80
    assert found["evalstopd_port_calls_total", ("cancel", "cluster")] == 1
    assert found["evalstopd_port_seconds_count", ("cluster", "queue")] >= 2
    assert found["evalstopd_breakers_holding", ("site",)] == 0
    assert time.time() - found["evalstopd_last_good_tick_timestamp_seconds", ()] < 60


def test_errors_are_counted_by_port_and_kind(daemon: Scraped) -> None:
    daemon.train("r1")
    with opened(daemon.world) as parts:
        parts["tracker"].down = True
    key = ("evalstopd_port_errors_total", ("Unavailable", "metrics", "read"))
    daemon.wait(lambda: daemon.figures().get(key, 0) >= 1, "the tracker's trouble is counted")
    with opened(daemon.world) as parts:
        parts["cluster"].down = True
    daemon.wait(lambda: daemon.figures().get(("evalstopd_ticks_total", ("bad",)), 0) >= 1, "bad passes are counted")

    assert daemon.figures()["evalstopd_port_errors_total", ("Unavailable", "cluster", "queue")] >= 1


def test_no_word_of_a_users_is_in_it_and_labels_have_few_values(daemon: Scraped) -> None:
    secret = "hostile-user-text"
    with opened(daemon.world) as parts:
        parts["cluster"].submit(1001, 8, f"mlflow_run={secret}", name=secret, account=secret, partition=secret)
        parts["tracker"].add_run(secret)
    daemon.wait(lambda: daemon.figures().get(("evalstopd_watched_jobs", ()), 0) >= 1, "it is watched")
    page = daemon.page()

    assert secret not in page
    assert "alice" not in page
    for family in parser.text_string_to_metric_families(page):
        for sample in family.samples:
            for label, value in sample.labels.items():
                assert float(value) > 0 if label == "le" else value in ALLOWED[label]


def test_it_listens_on_loopback_alone(daemon: Scraped) -> None:
    """The kernel's own table of listeners: 0100007F is 127.0.0.1."""
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if " 0A " in line]

    assert f"0100007F:{daemon.port:04X}" in listening
    assert f"00000000:{daemon.port:04X}" not in listening


def test_every_port_that_may_be_slow_or_broken_is_measured() -> None:
    """A port that comes later must be thought of; a registry has a thread of its own, so its answers are counted."""
    quiet = {"clock", "kill_switch", "should_stop", "registry"}

    assert set(ports.Ports.__dataclass_fields__) - quiet == {*measured.MEASURED, *measured.OPTIONAL}


@pytest.mark.parametrize(
    ("registry", "result"),
    [
        (FakeRegistry(), "made"),
        (FakeRegistry(down=True), "later"),
        (FakeRegistry(refuses="hostile-user-text"), "refused"),
    ],
    ids=["made", "later", "refused"],
)
def test_what_becomes_of_model_versions_is_counted_without_a_word_of_the_registrys(
    registry: FakeRegistry, result: str
) -> None:
    world, meters = World(), prometheus.PrometheusMeters(time.time)
    world.registry = registry
    counted = measured.measured(world.ports(), meters, time.monotonic)
    world.play(world.train("r1"), "r1", RISE_AND_FALL, counted)
    world.tick(ports=counted)
    page = exposition.generate_latest(meters.registry).decode()

    assert f'evalstopd_registrations_total{{result="{result}"}}' in page
    assert [each for each in ("made", "refused", "later") if f'result="{each}"' in page] == [result]
    assert "hostile-user-text" not in page


def test_what_one_run_is_left_alone_for_is_no_error_of_the_port() -> None:
    """One user's flood in each pass, and a run that is not there: MLflow is read all the same."""
    world, meters = World(), prometheus.PrometheusMeters(time.time)
    small = SmallMlflow()
    for run_id, points in (("flood", 51), ("calm", 3)):
        world.train(run_id)
        small.add(run_id, score=[(step, 0.5, 1_000_000 + step) for step in range(points)])
    world.train("missing")
    with Standin(small) as server:
        http = Http(Server(server.uri, timeout_s=60))
        source = MlflowSource(http, world.clock, Caps(points=50))
        counted = measured.measured(replace(world.ports(), metrics=source), meters, time.monotonic)
        for _ in range(3):
            world.tick(ports=counted)
        page = exposition.generate_latest(meters.registry).decode()
        small.trouble = lambda _: raw(b"", 500)
        world.tick(ports=counted)
        http.close()

    assert "evalstopd_port_errors_total{" not in page
    assert 'evalstopd_left_alone_total{call="read",port="metrics",why="quarantined"} 3.0' in page
    assert 'evalstopd_left_alone_total{call="read",port="metrics",why="refused"} 3.0' in page
    assert "evalstopd_port_errors_total{" in exposition.generate_latest(meters.registry).decode()


def test_questions_for_logged_models_are_counted_and_timed() -> None:
    world, meters = World(), prometheus.PrometheusMeters(time.time)
    world.models.down = True
    counted = measured.measured(world.ports(), meters, time.monotonic)
    job = world.train("r1")
    world.tracker.runs["r1"].models["m"] = FakeModel(10)
    for step in (10, 20):
        world.tracker.log("r1", step, 1.0 / step, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick(ports=counted)
    page = exposition.generate_latest(meters.registry).decode()

    assert job in world.cluster.jobs
    assert 'evalstopd_port_errors_total{call="find",error="Unavailable",port="models"} 1.0' in page
