"""A queue on a real cluster for tests of its order: a blocker that holds all GPUs, jobs that wait, who started when."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from demo.rig import users
from demo.rig.cluster import Cluster
from demo.service import Service

from evalstopd.core.shift import Shift
from tests.e2e.warm_service import Loaded, WarmService

WHOLE = ("--gpus=8", "--nodes=2", "--chdir=/", "--output=/dev/null")
# Nobody listens there: no job of these tests names a run.
NO_MLFLOW = "http://127.0.0.1:9"


class Lines:
    """The cluster's queue, and a daemon that keeps it in order."""

    def __init__(self, cluster: Cluster, service: Service) -> None:
        self.cluster, self.service = cluster, service

    def block(self) -> str:
        """Take all GPUs; return the job."""
        job = self.submit(users.ALICE, seconds=3600)
        self.wait(lambda: self.state(job) == "RUNNING", "the blocker runs")
        return job

    def submit(self, user: str, *options: str, seconds: float = 1, limit: int | None = None) -> str:
        """Submit a job that takes the whole cluster for so long; `limit` is its time limit in minutes."""
        limits = (f"--time={limit}",) if limit is not None else ()
        return self.cluster.sbatch(user, f"#!/bin/sh\nexec sleep {seconds}\n", *WHOLE, *limits, *options)

    def weigh(self, job: str, by: int) -> None:
        """Let the site's own factor raise or lower what Slurm gives a job; its Nice stays 0."""
        before = self.priority(job)
        self.cluster.run("scontrol", "update", f"JobId={job}", f"SiteFactor={by}")
        self.wait(lambda: abs(self.priority(job) - before - by) <= 1, "Slurm reckons with the site's factor")

    def state(self, job: str) -> str:
        return self.cluster.squeue("-j", job, "-h", "-o", "%T").strip()

    def nice(self, job: str) -> int:
        return int(self.shown(job, "Nice"))

    def priority(self, job: str) -> int:
        return int(self.shown(job, "PriorityLong"))

    def shown(self, job: str, field: str) -> str:
        return self.cluster.squeue("-j", job, "-O", f"{field}:.40").split()[0]

    def order(self, *jobs: str) -> list[str]:
        """Return the waiting jobs among these as Slurm would start them."""
        rows = [line.split() for line in self.cluster.squeue("-t", "PENDING", "-o", "%F %Q").splitlines()]
        found = {job: int(priority) for job, priority in rows if job in jobs}
        return sorted(found, key=lambda job: (-found[job], int(job)))

    def started(self, *jobs: str) -> list[str]:
        """Return the jobs in the order in which they started, by accounting."""
        rows = [line.split("|") for line in self.cluster.sacct("-X", "-j", ",".join(jobs), "-o", "JobID,Start").split()]
        began = {job: start for job, start in rows if start[:1].isdigit()}
        return sorted(began, key=lambda job: began[job])

    def run_all(self, blocker: str, *jobs: str) -> list[str]:
        """Free the GPUs, let all jobs run, and return the order in which they started."""
        self.cluster.run("scancel", blocker)
        self.wait(lambda: not self.cluster.squeue("-o", "%i").split(), "all jobs have run")
        self.wait(lambda: len(self.started(*jobs)) == len(jobs), "accounting knows all starts")
        return self.started(*jobs)

    def until_ordered(self, *jobs: str) -> None:
        self.wait(lambda: self.order(*jobs) == list(jobs), f"the order {jobs}, not {self.order(*jobs)}")

    def shifts(self) -> tuple[Shift, ...]:
        found: tuple[Shift, ...] = self.service.book.book(self.cluster.name).shifts
        return found

    def requeued(self, user: str, limit: int, runs_s: float) -> str:
        """Return a job that ran for so long, holding all GPUs, and is back in the queue, free to start again."""
        script = '#!/bin/sh\n[ "${SLURM_RESTART_COUNT:-0}" = 0 ] && exec sleep 600\nexec sleep 1\n'
        job = self.cluster.sbatch(user, script, *WHOLE, f"--time={limit}", "--requeue")
        self.wait(lambda: self.state(job) == "RUNNING", "its first life")
        time.sleep(runs_s)
        return job

    def requeue(self, job: str) -> None:
        """Put a running job back; it waits no two minutes."""
        self.cluster.run("scontrol", "requeue", job)
        self.wait(lambda: self.state(job) == "PENDING", "it waits again")
        self.cluster.start_again(job)

    def log(self) -> str:
        return self.service.log.read_text(errors="replace") if self.service.log.exists() else ""

    def passes(self, number: int = 2) -> None:
        """Wait until the daemon has made so many more passes."""
        before = self.log().count("jobs, ")
        self.wait(lambda: self.log().count("jobs, ") >= before + number, "the daemon goes on")

    def wait(self, holds: Callable[[], object], what: str, within_s: float = 150.0) -> None:
        end = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < end, f"not within {within_s:g} s: {what}\n{self.log()[-3000:]}"
            time.sleep(0.3)

    def clear(self) -> None:
        for state in ("PENDING", "RUNNING"):
            self.cluster.run("scancel", f"--state={state}")
        self.wait(lambda: not self.cluster.squeue("-o", "%i").split(), "all jobs over")


@contextmanager
def basic_priority(cluster: Cluster) -> Iterator[None]:
    """Let the cluster reckon with priority/basic for a while."""
    conf = Path(cluster.env["SLURM_CONF"])
    text = conf.read_text()
    cluster.stop_controller()
    conf.write_text(text.replace("priority/multifactor", "priority/basic"))
    cluster.start_controller()
    try:
        yield
    finally:
        cluster.stop_controller()
        conf.write_text(text)
        cluster.start_controller()


@contextmanager
def lines(
    loaded: Loaded, cluster: Cluster, directory: Path, store: Path, **changes: Mapping[str, object]
) -> Iterator[Lines]:
    """Yield the queue, with a service on a copy of the store, its daemon not started; at the end no job is left."""
    settings: dict[str, dict[str, object]] = {
        "mlflow": {"tracking_uri": NO_MLFLOW, "time_limit_s": 2.0},
        "rules": {"rung": "observe", "metric": "eval/score", "mode": "max"},
        "daemon": {"tick_s": 0.5},
        "slurm": {"time_limit_s": 20.0},
        "priorities": {"policy": "sjf-est", "min_interval_s": 1.0},
    }
    for section, values in changes.items():
        settings.setdefault(section, {}).update(values)
    service = WarmService(loaded, directory, cluster, settings, store)
    service.prepare()
    made = Lines(cluster, service)
    try:
        yield made
    finally:
        service.stop_daemon()
        made.clear()
        shutil.rmtree(directory, ignore_errors=True)
