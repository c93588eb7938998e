"""The plugin in a training script's process: what it writes, when it keeps away, and that it never gets in the way."""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from demo.rig.mlflow_server import MlflowServer
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.mlflow import job_comment, plugin
from evalstopd.core.mac import SiteKey, job_secret
from evalstopd.core.model import Job, Phase
from evalstopd.ports import RunReading
from tests.adapters.mlflow.tracker import Tracker
from tests.contracts.metrics_contract import reading

ROOT = Path(__file__).parents[3]
KEY = b"k" * 32
JOB = Job("evs", "2_1", 3, 1001, "alice", Phase.RUNNING, "RUNNING", 90, 100, 1, 4)
IN_JOB = {"SLURM_JOB_ID": "3", "SLURM_CLUSTER_NAME": "evs", "EVALSTOP_JOB_SECRET": job_secret(KEY, JOB, "105")}
START = """
import mlflow
with mlflow.start_run() as run:
    mlflow.log_param("output_dir", "out")
    mlflow.log_metric("m", 1.0, step=1)
    print(run.info.run_id)
"""
# A script that lives long enough for what goes on beside it, as training does.
BINDING = """
import threading
for thread in threading.enumerate():
    if thread.name == "evalstop-bind":
        thread.join(60)
"""


# --- pure


@pytest.mark.parametrize(
    ("comment", "merged"),
    [
        ("", "mlflow_run=new"),
        ("evalstop=keep", "mlflow_run=new evalstop=keep"),
        ("evalstop=keep;mlflow_run=old, my note", "mlflow_run=new evalstop=keep;my note"),
        ("a\nmlflow_run=old\nmlflow_run=older b", "mlflow_run=new a\nb"),
        ("not_mlflow_run=x", "mlflow_run=new not_mlflow_run=x"),
    ],
)
def test_the_comment_names_one_run_and_keeps_the_rest(comment: str, merged: str):
    assert job_comment.merged(comment, "new") == merged


@given(st.lists(st.sampled_from(["evalstop=keep", "x", "mlflow_run=old", "é=ü", "mlflow_run="]), max_size=6))
def test_naming_the_run_twice_is_naming_it_once(words: list[str]):
    once = job_comment.merged(";".join(words), "new")
    kept = [word for word in words if not word.startswith("mlflow_run=")]

    assert job_comment.merged(once, "new") == once
    assert once.replace(";", " ").split() == ["mlflow_run=new", *kept]


@pytest.mark.parametrize("run_id", ["", "a b", "a;evalstop=off", "a\n", "x" * 65])
def test_an_id_that_would_forge_words_is_refused(run_id: str):
    with pytest.raises(ValueError, match="does not fit"):
        job_comment.merged("", run_id)


@pytest.mark.parametrize("output", ["", "\n", "one~R\ntwo~R\n", "cut off"])
def test_any_other_number_of_jobs_is_refused(output: str):
    assert job_comment.comment_in("a\n9|RUNNING b~R\n", "~R") == "a\n9|RUNNING b"
    assert job_comment.comment_in("(null)~R\n", "~R") == ""
    with pytest.raises(ValueError, match="exactly one job"):
        job_comment.comment_in(output, "~R")


def test_a_task_is_addressed_alone():
    """The last task's raw id is the array's: it must not be used."""
    task = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    assert job_comment.exact_job_id(task) == "7_3"
    assert job_comment.exact_job_id({"SLURM_JOB_ID": "8"}) == "8"


def test_a_run_of_another_job_is_taken_only_when_told_to():
    """An evaluation job that logs to a training job's run must not take it."""
    mine = {"slurm.job_id": "3", "slurm.cluster": "evs"}
    for tags, ours in (
        ({}, True),
        (mine, True),
        ({**mine, "slurm.job_id": "4"}, False),
        ({**mine, "slurm.cluster": "other"}, False),
    ):
        assert plugin.is_ours_to_bind(tags, IN_JOB) is ours
        assert plugin.is_ours_to_bind(tags, {**IN_JOB, "EVALSTOP_TAKE_RUN": "1"})


def test_outside_a_job_nothing_happens(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)

    assert not plugin.SlurmTags().in_context()
    assert not plugin.RunBinder().in_context()
    assert not plugin.link("r")


def test_the_entry_points_are_there_to_be_loaded():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    loaded = {
        group: EntryPoint("evalstopd", entries["evalstopd"], group).load()
        for group, entries in groups.items()
        if group.startswith("mlflow.")
    }

    assert loaded == {
        "mlflow.run_context_provider": plugin.SlurmTags,
        "mlflow.request_header_provider": plugin.RunBinder,
    }


def test_importing_it_costs_a_training_script_next_to_nothing():
    """Neither MLflow nor anything that the daemon needs: the package may be installed without its dependencies."""
    names = "print(*{name.partition('.')[0] for name in sys.modules})"
    script = f"import sys; import evalstopd.adapters.mlflow.plugin; {names}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )

    assert "evalstopd" in done.stdout
    assert not {"mlflow", "httpx", "pydantic", "sqlalchemy", "typer"} & set(done.stdout.split())


# --- in a process of its own, with a real MLflow


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """A folder with the package and its entry points, as an installation has them."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "evalstopd_here-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evalstopd-here\nVersion: 0\n")
    lines = [f"[{group}]\n{name} = {value}" for group, entries in groups.items() for name, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def train(
    script: str, uri: str, site_packages: Path, environment: Mapping[str, str], python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "EVALSTOP", "MLFLOW"))}
    env = {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(site_packages), str(ROOT)]),
        "MLFLOW_TRACKING_URI": uri,
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        **environment,
    }
    return subprocess.run(
        [python, "-c", script], env=env, cwd=site_packages, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def tracker(mlflow_server: MlflowServer):
    tracker = Tracker(mlflow_server.uri)
    yield tracker
    tracker.http.close()


def tags_of(tracker: Tracker, run_id: str) -> Mapping[str, str]:
    found: RunReading = reading(tracker, run_id)
    return found.facts.tags


def started(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.mark.mlflow
def test_a_new_run_names_its_job_and_is_sealed(tracker: Tracker, site_packages: Path):
    done = train(START + BINDING, tracker.uri, site_packages, IN_JOB)
    run_id = started(done)
    tags = tags_of(tracker, run_id)

    assert (tags["slurm.job_id"], tags["slurm.cluster"]) == ("3", "evs")
    assert SiteKey(KEY).sealed(JOB, run_id, tags["evalstop.mac"])
    assert "evalstopd" not in done.stderr
    assert IN_JOB["EVALSTOP_JOB_SECRET"].partition(".")[2] not in str(tags)


@pytest.mark.mlflow
def test_a_resumed_run_is_sealed_for_the_new_life_and_a_strange_one_left_alone(tracker: Tracker, site_packages: Path):
    """MLflow asks for tags only when a run is made: the other hook sees runs that go on."""
    old = {"slurm.job_id": "3", "slurm.cluster": "evs", "evalstop.mac": "old"}
    mine, strange = tracker.make_run(old, {}), tracker.make_run({**old, "slurm.job_id": "4"}, {})
    for run_id in (mine, strange):
        assert started(train(START + BINDING, tracker.uri, site_packages, {**IN_JOB, "MLFLOW_RUN_ID": run_id}))

    assert SiteKey(KEY).sealed(JOB, mine, tags_of(tracker, mine)["evalstop.mac"])
    assert tags_of(tracker, strange)["evalstop.mac"] == "old"
    assert tags_of(tracker, strange)["slurm.job_id"] == "4"


@pytest.mark.mlflow
def test_a_run_logged_to_from_another_thread_is_sealed(tracker: Tracker, site_packages: Path):
    """Asynchronous logging, as Hugging Face does it: the active run belongs to the main thread."""
    script = """
import mlflow
run = mlflow.start_run()
mlflow.log_metric("m", 1.0, step=1, synchronous=False).wait()
print(run.info.run_id)
"""
    run_id = started(train(script + BINDING, tracker.uri, site_packages, IN_JOB))

    assert SiteKey(KEY).sealed(JOB, run_id, tags_of(tracker, run_id)["evalstop.mac"])


@pytest.mark.mlflow
def test_a_run_made_by_the_client_is_sealed_by_one_line(tracker: Tracker, site_packages: Path):
    script = """
import mlflow
from evalstopd.adapters.mlflow import job_comment, plugin
run_id = mlflow.MlflowClient().create_run("0").info.run_id
assert plugin.link(run_id)
print(run_id)
"""
    run_id = started(train(script, tracker.uri, site_packages, IN_JOB))

    assert SiteKey(KEY).sealed(JOB, run_id, tags_of(tracker, run_id)["evalstop.mac"])


@pytest.mark.mlflow
def test_a_run_that_a_library_makes_by_the_client_with_the_jobs_tags_is_sealed_and_no_other(
    tracker: Tracker, site_packages: Path
):
    """Lightning's logger asks for the tags and makes its run by the client; runs made without them are no job's own."""
    script = """
import mlflow
from mlflow.tracking.context.registry import resolve_tags
client = mlflow.MlflowClient()
client.get_experiment_by_name("Default")
other = client.create_run("0").info.run_id
run = client.create_run("0", tags=resolve_tags())
client.log_metric(other, "m", 1.0)
print(other, run.info.run_id)
"""
    done = train(script + BINDING, tracker.uri, site_packages, IN_JOB)
    run_id, other = started(done), done.stdout.split()[0]

    assert SiteKey(KEY).sealed(JOB, run_id, tags_of(tracker, run_id)["evalstop.mac"])
    assert "evalstop.mac" not in tags_of(tracker, other)


@pytest.mark.mlflow
def test_the_tags_that_taskprolog_gives_reach_a_run_without_the_plugin(tracker: Tracker, tmp_path: Path):
    """MLflow's own MLFLOW_RUN_CONTEXT: enough for binding by tags where the server checks users."""
    hook = ROOT / "systemd" / "slurm" / "taskprolog.sh"
    job = {"SLURM_JOB_ID": "3", "SLURM_CLUSTER_NAME": "evs"}
    said = subprocess.run(
        ["/bin/sh", str(hook), str(tmp_path)], env=job, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    exported = dict(line.removeprefix("export ").split("=", 1) for line in said)
    run_id = started(train(START, tracker.uri, tmp_path, exported))

    assert exported.keys() == {"MLFLOW_RUN_CONTEXT"}
    assert {"slurm.job_id": "3", "slurm.cluster": "evs"}.items() <= tags_of(tracker, run_id).items()


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"SLURM_JOB_ID": "3"},
        {"SLURM_JOB_ID": "3", "SLURM_CLUSTER_NAME": 'e"vs'},
        {"SLURM_JOB_ID": "3", "SLURM_CLUSTER_NAME": "EVS"},
        {"SLURM_JOB_ID": "3", "SLURM_CLUSTER_NAME": "evs", "MLFLOW_RUN_CONTEXT": '{"mine": "1"}'},
    ],
    ids=str,
)
def test_taskprolog_gives_no_tags_that_it_cannot_stand_for_and_replaces_none_of_the_owners(
    job: Mapping[str, str], tmp_path: Path
):
    hook = ROOT / "systemd" / "slurm" / "taskprolog.sh"
    said = subprocess.run(["/bin/sh", str(hook), str(tmp_path)], env=job, capture_output=True, text=True, check=True)

    assert said.stdout == ""


@pytest.mark.mlflow
@pytest.mark.parametrize(
    "trouble",
    [
        {"EVALSTOP_JOB_SECRET": "not a secret\x1b[31m"},
        {"EVALSTOP_JOB_SECRET": "", "PATH": "/nonexistent"},
        {"EVALSTOP_JOB_SECRET": "", "SLURM_ARRAY_JOB_ID": "9"},
        {"SLURM_JOB_ID": "1" * 9_000},
    ],
)
def test_whatever_is_wrong_the_training_goes_on(tracker: Tracker, site_packages: Path, trouble: Mapping[str, str]):
    done = train(START + BINDING, tracker.uri, site_packages, {**IN_JOB, **trouble})
    run_id = started(done)

    assert len(reading(tracker, run_id).facts.metrics) == 1
    assert "evalstop.mac" not in tags_of(tracker, run_id)
    assert "\x1b" not in done.stderr


@pytest.mark.mlflow
def test_a_slow_scontrol_holds_up_nothing(tracker: Tracker, site_packages: Path):
    tools = site_packages / "bin"
    tools.mkdir()
    (tools / "squeue").write_text("#!/bin/sh\nsleep 60\n")
    (tools / "squeue").chmod(0o755)
    began = time.monotonic()
    environment = {**IN_JOB, "EVALSTOP_JOB_SECRET": "", "PATH": f"{tools}:{os.environ['PATH']}"}
    done = train(START, tracker.uri, site_packages, environment)

    assert done.returncode == 0
    assert time.monotonic() - began < 50
