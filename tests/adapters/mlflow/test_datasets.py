"""Several datasets under one name on real servers: the contract, MLflow's own client, and the loop's decision by it."""

import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from demo.rig.mlflow_server import MlflowServer

from evalstopd.core.datasets import Dataset
from evalstopd.ports import MetricsSource, RunQuery, RunReading
from evalstopd.report.replay.sources import Pick, read_source
from evalstopd.store.memory import MemoryStore
from tests.adapters.mlflow.tracker import Tracker
from tests.contracts.datasets_contract import CLEAN, METRIC, NOISY, DatasetsContract, read
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import said

pytestmark = pytest.mark.mlflow


class RealWorld:
    """Runs on a real server that log with datasets and logged models, as MLflow's client does over REST."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.source: MetricsSource = tracker.source
        self.named: set[tuple[str, str]] = set()

    def make_run(self, tags: Mapping[str, str] | None = None) -> str:
        return self.tracker.make_run(tags or {}, {})

    def make_model(self, run_id: str) -> str:
        wanted = {"experiment_id": self.tracker.experiment, "name": "model", "source_run_id": run_id}
        model_id = str(self.tracker.call("/logged-models", wanted)["model"]["info"]["model_id"])
        self.tracker.call("/runs/outputs", {"run_id": run_id, "models": [{"model_id": model_id, "step": 0}]})
        self.named.add((run_id, model_id))
        return model_id

    def log(self, run_id: str, metric: str, point: tuple[int, float, int]) -> None:
        self.tracker.log(run_id, metric, [point])

    def log_of(self, run_id: str, metric: str, point: tuple[int, float, int], dataset: Dataset, model_id: str) -> None:
        step, value, stamp = point
        if (run_id, model_id) not in self.named:
            self.tracker.call("/runs/log-inputs", {"run_id": run_id, "models": [{"model_id": model_id}]})
            self.named.add((run_id, model_id))
        logged = {"key": metric, "value": value, "timestamp": stamp, "step": step}
        of = {"model_id": model_id, "dataset_name": dataset.name, "dataset_digest": dataset.digest}
        self.tracker.call("/runs/log-metric", {"run_id": run_id, **logged, **of})


@pytest.fixture
def world(mlflow_server: MlflowServer) -> Iterator[RealWorld]:
    world = RealWorld(Tracker(mlflow_server.uri))
    yield world
    world.tracker.http.close()


class TestRealMlflowTellsDatasetsApart(DatasetsContract):
    @pytest.fixture
    def world(self, world: RealWorld) -> RealWorld:  # type: ignore[misc]
        return world


def test_models_on_many_pages_are_all_read(world: RealWorld):
    run_id = world.make_run()
    for step in range(105):
        model_id = world.make_model(run_id)
        for place, dataset in enumerate((CLEAN, NOISY)):
            world.log_of(run_id, METRIC, (step, step / 105 + place, 10 * step + place), dataset, model_id)
    found = read(world, run_id, "noisy")
    assert ([point.step for point in found.points], found.dataset) == (list(range(105)), "noisy@n1")


def test_replay_reads_the_dataset_that_is_named_and_leaves_out_what_it_cannot_tell_apart(world: RealWorld):
    experiment = secrets.token_hex(4)
    run_id = world.tracker.add_run(world.tracker.make_experiment(experiment), 1)
    model_id = world.make_model(run_id)
    for step, scores in enumerate(zip(RISE_AND_FALL, HEALTHY, strict=True), 1):
        for place, (score, dataset) in enumerate(zip(scores, (CLEAN, NOISY), strict=True)):
            world.log_of(run_id, METRIC, (step, score, 10 * step + place), dataset, model_id)

    def replayed(dataset: str) -> list[tuple[float, ...]]:
        found = read_source(Path(f"mlflow:{experiment}"), Pick(dataset=dataset), lambda: world.tracker.source)
        return [tuple(each.score for each in history.evals) for history in found]

    assert replayed("clean") == [RISE_AND_FALL]
    assert replayed("noisy") == [HEALTHY]
    assert (replayed(""), replayed("held-out")) == ([], [])


def story(world: RealWorld, comment: str) -> tuple[World, str]:
    """Play a job whose run on the real server falls on one dataset and rises on the other."""
    loop = World(replace(RULES, rule="k-declines:k=2", metric=METRIC))
    job = loop.train("unused", comment=comment)
    raw_id = str(loop.cluster.jobs[job].raw_id)
    run_id = world.make_run({"slurm.job_id": raw_id})
    world.tracker.call("/runs/log-batch", {"run_id": run_id, "params": [{"key": "output_dir", "value": "out"}]})
    loop.cluster.set_comment(job, f"mlflow_run={run_id} {comment}")
    source = world.tracker.source
    ports = replace(loop.ports(), metrics=source, runs=source, finder=source)
    for number, scores in enumerate(zip(RISE_AND_FALL, HEALTHY, strict=True), 1):
        if loop.cluster.jobs[job].phase != "running":
            break
        model_id = world.make_model(run_id)
        for place, (score, dataset) in enumerate(zip(scores, (CLEAN, NOISY), strict=True)):
            at_ms = int(loop.clock.time_s * 1000) + place
            world.log_of(run_id, METRIC, (10 * number, score, at_ms), dataset, model_id)
        loop.keeper.save(f"{loop.cluster.jobs[job].work_dir}/out", 10 * number, at_s=loop.clock.time_s)
        loop.tick(ports=ports)
    return loop, job


def evidences(loop: World) -> list[tuple[str, tuple[float, ...]]]:
    assert isinstance(loop.store, MemoryStore)
    (watch,) = loop.store.recent(1)
    return [(each.evidence.dataset, each.evidence.scores) for each in loop.store.intents_of([watch.key])]


def test_the_dataset_that_falls_stops_the_job_and_the_one_that_rises_does_not(world: RealWorld):
    loop, job = story(world, "evalstop_dataset=clean")
    assert loop.cluster.cancelled == [(job, 0)]
    assert evidences(loop) == [("clean@c1", RISE_AND_FALL[:5])]
    loop, _ = story(world, "evalstop_dataset=noisy")
    assert (loop.cluster.cancelled, evidences(loop)) == ([], [])


def test_where_none_is_chosen_nothing_is_done_and_the_datasets_are_named(world: RealWorld):
    loop, _ = story(world, "evalstop=enforce")
    assert (loop.cluster.cancelled, evidences(loop)) == ([], [])
    (text,) = said(loop, "several-series")
    assert "2 datasets: clean (digest c1), noisy (digest n1)" in text
    assert "evalstop_dataset=" in text


CLIENT = """
import sys, mlflow, numpy
class Model(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input
mlflow.set_tracking_uri(sys.argv[1])
clean = mlflow.data.from_numpy(numpy.arange(3), name="clean")
noisy = mlflow.data.from_numpy(numpy.arange(4), name="noisy")
def evaluate(step, **more):
    mlflow.log_metric("eval/accuracy", step / 100, step=step, dataset=clean, **more)
    mlflow.log_metrics({"eval/accuracy": 1 - step / 100}, step=step, dataset=noisy, **more)
with mlflow.start_run() as each_step:
    for step in (10, 20, 30):
        mlflow.pyfunc.log_model(name="model", python_model=Model(), step=step)
        evaluate(step)
with mlflow.start_run() as one_for_all:
    model = mlflow.initialize_logged_model(name="agent")
    for step in (10, 20, 30):
        evaluate(step, model_id=model.model_id)
outside = mlflow.create_external_model(name="agent")
with mlflow.start_run() as no_runs:
    for step in (10, 20, 30):
        evaluate(step, model_id=outside.model_id)
with mlflow.start_run() as without:
    for step in (10, 20, 30):
        evaluate(step)
print("RUNS", *(run.info.run_id for run in (each_step, one_for_all, no_runs, without)))
"""


def test_what_mlflows_own_client_logs_is_told_apart_wherever_it_logs_with_a_model(world: RealWorld):
    """A model for each step, one for all, one that no run made; and none, of which no server keeps the dataset."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, world.tracker.uri], env=environment, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    *with_models, without = done.stdout.partition("RUNS ")[2].split()[:4]
    for run_id in with_models:
        for asked, values in (("clean", [0.1, 0.2, 0.3]), ("noisy", [0.9, 0.8, 0.7])):
            found = read(world, run_id, asked)
            assert [point.value for point in found.points] == values, (asked, found)
    assert "no logged model tells" in read(world, without, "clean").untold


def test_a_run_that_cannot_be_told_apart_costs_its_neighbour_nothing(world: RealWorld):
    mixed, plain = world.make_run(), world.make_run()
    for step in range(4):
        world.log(mixed, METRIC, (step, 0.5, 10 * step))
        world.log(mixed, METRIC, (step, 0.25, 10 * step + 1))
        world.log(plain, METRIC, (step, step / 10, 10 * step))
    queries = [RunQuery(run_id, METRIC, dataset="clean") for run_id in (mixed, plain, secrets.token_hex(16))]
    answers = world.source.read(queries)
    assert [isinstance(answers[each], RunReading) for each in queries] == [True, True, False]
    neighbour = answers[queries[1]]
    assert isinstance(neighbour, RunReading)
    assert (len(neighbour.points), neighbour.untold) == (4, "")
