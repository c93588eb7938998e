"""Submits the example scripts, and looks at what became of them."""

import json
import sys
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from demo.rig import users

from evalstopd.core.intent import Intent, State
from tests.e2e.site import Site

ALICE = users.ALICE
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Jobs:
    """The examples in a user's folder, and the site they run on."""

    site: Site
    folder: Path

    def submit(self, script: str, *arguments: str, experiment: str = "") -> str:
        """Submit a script as its header says; the environment has the tracker's address and the Python alone."""
        exports = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "MLFLOW_TRACKING_URI": self.site.mlflow.uri,
            "MLFLOW_EXPERIMENT_NAME": experiment or Path(script).stem,
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }
        words = ",".join(f"{name}={value}" for name, value in exports.items())
        command = ["sbatch", "--parsable", "--gpus=1", "--output=%j.log", f"--export={words}", "job.sbatch", script]
        done = self.site.cluster.as_user(ALICE, [*command, *arguments], cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def stopped(self, job: str) -> Intent:
        """Wait until the daemon has stopped a job; return what it decided."""
        self.site.wait(lambda: self._confirmed(job) or self._ended(job), f"the stop of {job}", PATIENCE_S)
        assert self._confirmed(job), f"{job} was not stopped: {self.story(job)}"
        return self.site.intents(job)[0]

    def resume(self, script: str, checkpoint: Path, steps: int) -> str:
        """Run a script from a checkpoint, as its owner; return what it printed."""
        env = {"MLFLOW_TRACKING_URI": self.site.mlflow.uri, "MLFLOW_EXPERIMENT_NAME": "resumed"}
        env |= {"MLFLOW_DISABLE_TELEMETRY": "true", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(self.folder / script), "--steps", str(steps), "--resume", str(checkpoint)]
        folder = self.resumed(script)
        self.site.cluster.as_user(ALICE, ["mkdir", folder.name], cwd=self.folder)
        done = self.site.cluster.as_user(ALICE, command, env=env, cwd=folder, timeout_s=PATIENCE_S)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    def resumed(self, script: str) -> Path:
        """Return the folder that the script is resumed in."""
        return self.folder / f"resumed-{Path(script).stem}"

    def history(self, run_id: str, metric: str) -> dict[int, float]:
        """Return what a run holds of a metric, by step."""
        query = urllib.parse.urlencode({"run_id": run_id, "metric_key": metric, "max_results": 1000})
        address = f"{self.site.mlflow.uri}/api/2.0/mlflow/metrics/get-history?{query}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return {int(each["step"]): float(each["value"]) for each in json.load(answer).get("metrics", [])}

    def story(self, job: str) -> str:
        """Return what a failed test should show: events, remarks, the end of the job's output."""
        log = self.folder / f"{job}.log"
        output = log.read_text(errors="replace")[-1500:] if log.exists() else "no output"
        remarks = [each for each in self.site.remarks() if each[0] == job]
        return f"{self.site.watch(job)}\n{self.site.events(job)}\n{remarks}\n{output}"

    def _confirmed(self, job: str) -> bool:
        return any(each.state is State.CONFIRMED for each in self.site.intents(job))

    def _ended(self, job: str) -> bool:
        return not self.site.intents(job) and self.site.state(job) in {"COMPLETED", "FAILED", "NODE_FAIL"}
