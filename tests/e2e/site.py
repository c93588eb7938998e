"""A whole site for one test: the shared cluster and MLflow server, and a daemon of its own."""

import json
import shutil
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.service import Service

from evalstopd.core.intent import Intent
from evalstopd.core.watch import Watch

TRAINER = Path(__file__).with_name("trainer.py")
METRIC = "eval/score"
FALL = "0.1,0.4,0.8,0.7,0.6,0.5,0.4,0.3"
RISE = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8"


class Site:
    """What a test of the main job needs at hand: submit, wait, look."""

    def __init__(self, cluster: Cluster, mlflow: MlflowServer, service: Service) -> None:
        self.cluster, self.mlflow, self.service = cluster, mlflow, service
        self.store = service.book
        self._trainer = service.directory / "trainer.py"
        shutil.copy(TRAINER, self._trainer)
        self._trainer.chmod(0o755)

    def train(self, user: str, scores: str, *options: str, words: str = "", pace_s: float = 1.0, more: str = "") -> str:
        """Submit a job that logs these scores; `words` go into its comment."""
        script = f"#!/bin/sh\nexec {self.command(scores, words=words, pace_s=pace_s)} {more}\n"
        return self.cluster.sbatch(user, script, *(options or ("--gpus=4", "--nodes=1")))

    def command(self, scores: str, *, words: str = "", pace_s: float = 1.0) -> str:
        return f"/usr/bin/python3 {self._trainer} {self.mlflow.uri} {scores} {pace_s} --comment '{words}'"

    def state(self, job: str) -> str:
        """Return how the job stands: squeue's word, or accounting's once it is over."""
        listed = self.cluster.squeue("-j", job.partition("_")[0], "-o", "%i %T").splitlines()
        states = dict(line.split() for line in listed)
        return states.get(job) or self.accounted(job)

    def accounted(self, job: str) -> str:
        """Return the state that accounting has, without who did it."""
        words = self.cluster.sacct("-X", "-j", job, "-o", "State").split()
        return words[0] if words else ""

    def watch(self, job: str) -> Watch | None:
        return next(iter(self.store.find(job)), None)

    def intents(self, job: str) -> tuple[Intent, ...]:
        watch = self.watch(job)
        return self.store.intents_of([watch.key]) if watch else ()

    def events(self, job: str) -> list[tuple[str, str]]:
        events = self.store.events_of([intent.id for intent in self.intents(job)])
        return [(event.kind, event.text) for event in events]

    def kinds(self, job: str) -> set[str]:
        """Return the kinds of a job's events; what became of a message may come after what follows it."""
        return {kind for kind, _ in self.events(job)}

    def remarks(self) -> list[tuple[str, str, str]]:
        """Return every report line on a watched job: job, kind, text."""
        keys = [watch.key for watch in self.store.recent(100)]
        said = self.store.remarks_of([key.text for key in keys])
        jobs = {key.text: key.job_id for key in keys}
        return sorted((jobs[remark.subject], remark.code, remark.text) for remark in said)

    def run(self, run_id: str) -> Mapping[str, Any]:
        """Return a run as MLflow shows it: status and tags."""
        with urllib.request.urlopen(f"{self.mlflow.uri}/api/2.0/mlflow/runs/get?run_id={run_id}", timeout=30) as answer:
            run = json.load(answer)["run"]
        return {"status": run["info"]["status"], "tags": {t["key"]: t["value"] for t in run["data"]["tags"]}}

    def evals(self, job: str) -> int:
        watch = self.watch(job)
        return watch.evals if watch else 0

    def wait(self, holds: Callable[[], object], what: str, within_s: float = 120.0) -> None:
        """Wait until something holds; fail with what it was and the daemon's last words."""
        end = time.monotonic() + within_s
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"not within {within_s:g} s: {what}\n{self._last_words()}")
            time.sleep(0.2)

    def _last_words(self) -> str:
        log = self.service.log.read_text(errors="replace") if self.service.log.exists() else ""
        told = "\n".join(line for line in log.splitlines() if not line.endswith("nothing to do"))[-6000:]
        return f"{told}\n{self.cluster.squeue('-o', '%i %T %r %Q %N %S')}\n{self._jobs_words()}"

    def _jobs_words(self) -> str:
        """Return what the jobs of this test printed last, and as what the controller knows them."""
        known = [line.split() for line in self.cluster.run("scontrol", "-o", "show", "jobs").splitlines()]
        wanted = ("JobId=", "JobState=", "ExitCode=", "Reason=", "StartTime=", "EndTime=", "Comment=")
        jobs = "\n".join(" ".join(word for word in words if word.startswith(wanted)) for words in known[-4:])
        outputs = [path for user in (users.ALICE, users.BOB) for path in self.cluster.work(user).glob("slurm-*.out")]
        newest = sorted(outputs, key=lambda path: path.stat().st_mtime)[-4:]
        return jobs + "".join(f"\n{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in newest)

    def clear(self) -> None:
        """End every job of the cluster."""
        for state in ("PENDING", "RUNNING"):
            self.cluster.run("scancel", "--full", "--signal=KILL", f"--state={state}")
            self.cluster.run("scancel", f"--state={state}")
        self.wait(lambda: not self.cluster.squeue("-o", "%i").split(), "all jobs over")
