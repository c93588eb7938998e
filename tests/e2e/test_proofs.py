"""Jobs that write nothing into their comment, on real Slurm and MLflow: what binds them, and what does not."""

import json
import os
import pwd
import shutil
import sys
import tomllib
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.rig.processes import wait_until

from evalstopd.core.intent import State
from tests.e2e.site import FALL, METRIC, RISE, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
ROOT = Path(__file__).parents[2]
ALICE = users.ALICE
MakeSite = Callable[..., Site]
# Where the training runs, beside the package: its first life trains, a later one only waits.
SCRIPT = """\
#!/bin/sh
export PYTHONPATH={folder} MLFLOW_TRACKING_URI={uri} {more}
{before}
exec {python} {folder}/plain_trainer.py {scores} 1 120
"""
ONCE = '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exec sleep 300'
NO_SECRET = "unset EVALSTOP_JOB_SECRET"


@pytest.fixture
def training(cluster: Cluster, reachable_directory: Path) -> Path:
    """A training environment with the package in it, as `pip install --no-deps` leaves it; skips without MLflow."""
    probe = cluster.as_user(ALICE, [sys.executable, "-c", "import mlflow"])
    if probe.returncode:
        pytest.skip(f"SLURM TESTS SKIPPED: {ALICE} cannot run {sys.executable}: {probe.stderr.strip()[-200:]}")
    folder = reachable_directory / "training"
    shutil.copytree(ROOT / "evalstopd", folder / "evalstopd", dirs_exist_ok=True)
    for name in ("trainer.py", "plain_trainer.py"):
        shutil.copy(Path(__file__).with_name(name), folder)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = folder / "evalstopd_here-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evalstopd-here\nVersion: 0\n")
    lines = [f"[{group}]\n{name} = {value}" for group, entries in groups.items() for name, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture
def mac_key(cluster: Cluster, reachable_directory: Path) -> str:
    """The site key as the daemon's account has it."""
    path = reachable_directory / "daemon-mac-key"
    path.unlink(missing_ok=True)
    shutil.copy(cluster.site_key, path)
    account = pwd.getpwnam(users.DAEMON)
    os.chown(path, account.pw_uid, account.pw_gid)
    return str(path)


@pytest.fixture
def submit(cluster: Cluster, mlflow_server: MlflowServer, training: Path) -> Callable[..., str]:
    def submit(scores: str, *options: str, before: str = "", more: str = "") -> str:
        script = SCRIPT.format(
            folder=training, uri=mlflow_server.uri, python=sys.executable, scores=scores, before=before, more=more
        )
        return cluster.sbatch(ALICE, script, *(options or ("--gpus=2", "--nodes=1")))

    return submit


def call(server: MlflowServer, route: str, **fields: object) -> Any:
    request = urllib.request.Request(
        f"{server.uri}/api/2.0/mlflow/{route}", json.dumps(fields).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def named(server: MlflowServer, raw_id: str) -> list[Mapping[str, Any]]:
    """Return the runs whose tag names a job, newest first."""
    wanted = {"experiment_ids": ["0"], "filter": f"tags.`slurm.job_id` = '{raw_id}'"}
    return list(call(server, "runs/search", **wanted, max_results=50).get("runs", []))


def tags(run: Mapping[str, Any]) -> dict[str, str]:
    return {each["key"]: each["value"] for each in run["data"]["tags"]}


def ticks(site: Site, more: int) -> None:
    """Wait until the daemon made so many passes more."""
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count(" jobs, ") >= more, f"{more} passes")


def test_tasks_bound_by_their_seals_alone_are_judged_and_only_the_falling_one_is_stopped(
    make_site: MakeSite, mac_key: str, submit: Callable[..., str]
) -> None:
    """Root's Prolog, TaskProlog, plugin, daemon: no comment, no scontrol; the last task has the array's raw id."""
    site = make_site(binding={"mac_key": mac_key})
    falling_last = f'[ "$SLURM_ARRAY_TASK_ID" = 1 ] || set -- {RISE}'
    scores = '"${1:-' + FALL + '}"'
    array = submit(scores, "--gpus=2", "--nodes=1", "--array=0-1", before=falling_last)
    falling, rising = f"{array}_1", f"{array}_0"
    site.wait(lambda: site.intents(falling) and site.intents(falling)[0].state is State.CONFIRMED, "the stop", 150)

    intent = site.intents(falling)[0]
    run = site.run(intent.evidence.run_id)
    assert (intent.evidence.proof, intent.evidence.two_way, intent.evidence.trigger_step) == ("mac", True, 50)
    assert (run["status"], run["tags"]["evalstop.state"]) == ("KILLED", "confirmed")
    assert Path(intent.kept_path).is_dir()
    assert site.accounted(falling) == "CANCELLED"
    site.wait(lambda: site.evals(rising) >= 5, "the sister's evals")
    assert site.state(rising) == "RUNNING"
    assert site.cluster.squeue("-j", rising, "-o", "%k").strip() in ("", "(null)")
    assert all(code.startswith("early-warning") for _, code, _ in site.remarks())
    check_secret(site.cluster, rising, ended=array)


def check_secret(cluster: Cluster, job: str, ended: str) -> None:
    """A running job's secret is its owner's to read and nobody else's; an ended one's is gone."""
    raw_id = cluster.squeue("-j", job, "-O", "JobID").strip()
    secrets = cluster.directory / "run" / "jobs"
    secret = secrets / raw_id / "secret"
    assert (secret.owner(), secret.stat().st_mode & 0o777) == (ALICE, 0o400)
    assert cluster.as_user(ALICE, ["cat", str(secret)]).returncode == 0
    assert cluster.as_user(users.BOB, ["cat", str(secret)]).returncode != 0
    assert cluster.as_user(ALICE, ["cat", str(cluster.site_key)]).returncode != 0
    assert wait_until(lambda: not (secrets / ended).exists(), 15)


def test_a_copied_seal_binds_neither_another_run_nor_a_later_life_nor_a_later_job(
    make_site: MakeSite, mac_key: str, submit: Callable[..., str], mlflow_server: MlflowServer
) -> None:
    site = make_site(binding={"mac_key": mac_key})
    job = submit(RISE, before=ONCE)
    site.wait(lambda: site.evals(job) >= 3, "the first life is bound", 120)
    (own,) = named(mlflow_server, job)
    copied = call(mlflow_server, "runs/create", experiment_id="0", start_time=1, tags=own["data"]["tags"])["run"]
    fall(mlflow_server, copied["info"]["run_id"])
    ticks(site, 5)
    watch = site.watch(job)
    assert watch is not None
    assert (watch.run_id, watch.proof) == (own["info"]["run_id"], "mac")
    assert site.intents(job) == ()

    requeue(site, job)
    fall(mlflow_server, own["info"]["run_id"], 200)
    later = submit(RISE, before="exec sleep 300")
    site.wait(lambda: site.state(later) == "RUNNING", "a later job")
    for run in (own, copied):
        call(mlflow_server, "runs/set-tag", run_id=run["info"]["run_id"], key="slurm.job_id", value=later)
    ticks(site, 5)
    call(mlflow_server, "runs/set-tag", run_id=own["info"]["run_id"], key="slurm.job_id", value=job)
    ticks(site, 5)

    watch = site.watch(job)
    assert watch is not None
    assert (watch.life.restarts, watch.read_life) == (1, 0)
    assert site.intents(job) == ()
    assert {site.state(each) for each in (job, later)} == {"RUNNING"}
    assert site.watch(later) is None


def fall(server: MlflowServer, run_id: str, start: int = 100) -> None:
    """Log a clear decline, as anyone can on an open server."""
    for number, score in enumerate(FALL.split(",")):
        step = start + number * 10
        call(server, "runs/log-metric", run_id=run_id, key=METRIC, value=float(score), step=step, timestamp=step)


def requeue(site: Site, job: str) -> None:
    site.cluster.run("scontrol", "requeue", job)
    site.wait(lambda: site.state(job) == "PENDING", "the requeue")
    ticks(site, 3)
    site.cluster.start_again(job)
    site.wait(lambda: site.state(job) == "RUNNING", "the second life")


def test_a_tag_alone_on_an_open_server_never_binds_whatever_was_declared(
    make_site: MakeSite, submit: Callable[..., str], mlflow_server: MlflowServer
) -> None:
    site = make_site(mlflow={"server": "authenticated"}, binding={"tags": "a proxy sets the user"})
    before = f"{NO_SECRET}; PATH=/nonexistent"
    job = submit(FALL, before=before)
    site.wait(lambda: len(points(mlflow_server, job)) == 8, "all evals are logged", 120)
    ticks(site, 5)

    (run,) = named(mlflow_server, job)
    assert tags(run)["slurm.cluster"] == site.cluster.name
    assert run["info"]["user_id"] == ALICE
    assert site.watch(job) is None
    assert site.state(job) == "RUNNING"
    assert "taken for open" in site.service.log.read_text()
    bad = {each["what"]: each["text"] for each in site.service.json("check") if not each["good"]}
    assert set(bad) == {"mlflow server"}


def points(server: MlflowServer, raw_id: str) -> list[Any]:
    runs = named(server, raw_id)
    if not runs:
        return []
    route = f"metrics/get-history?run_id={runs[0]['info']['run_id']}&metric_key={METRIC}&max_results=100"
    with urllib.request.urlopen(f"{server.uri}/api/2.0/mlflow/{route}", timeout=30) as answer:
        return list(json.load(answer).get("metrics", []))


def test_without_a_secret_the_plugin_names_each_tasks_own_run_in_its_comment(
    make_site: MakeSite, submit: Callable[..., str], mlflow_server: MlflowServer
) -> None:
    """The owner's words stay, and the last task's raw id, which is the array's, hits no sister."""
    site = make_site(rules={"rung": "observe"}, enforce={"override": ""})
    array = submit(RISE, "--gpus=2", "--nodes=1", "--array=0-1", "--comment=evalstop=keep; mine", before=NO_SECRET)
    tasks = [f"{array}_0", f"{array}_1"]
    site.wait(lambda: all(site.evals(task) >= 2 for task in tasks), "both tasks are watched", 120)

    watches = [site.watch(task) for task in tasks]
    assert len({watch.run_id for watch in watches if watch}) == 2
    for task, watch in zip(tasks, watches, strict=True):
        assert watch is not None
        comment = site.cluster.squeue("-j", task, "-o", "%k").strip()
        assert comment == f"mlflow_run={watch.run_id} evalstop=keep; mine"
        assert (watch.proof, watch.two_way) == ("comment", True)
