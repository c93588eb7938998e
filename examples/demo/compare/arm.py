"""One arm on the real cluster: submit the jobs when they are due, wait for their ends, read Slurm's accounting."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from pathlib import Path

from evalstopd_sim.truth import RLHF, TrueJob

from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.errors import RigError

from .plan import Ran
from .trainer import make_run

ACCOUNT = "ml"
LOOK_S = 0.5
SAY_S = 10.0
# A run that takes this many times as long as the simulator says is broken, not slow.
PATIENCE = 5.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the jobs run: the cluster, the MLflow server, and the trainer's file where the jobs' users can read it.

    Without a server all jobs only take their time. With `limits` each has its estimate as its time limit, a minute for
    each second of it: Slurm counts limits in minutes.
    """

    cluster: Cluster
    tracking_uri: str
    trainer: Path
    limits: bool = False


def run_arm(stage: Stage, jobs: Sequence[TrueJob], name: str, expected_s: float, say: Say) -> list[Ran]:
    """Run the jobs to their ends and return how they went. Raises RigError when that takes far too long."""
    orders = [_order(stage, job, f"{name}-{place:03d}") for place, job in enumerate(jobs)]
    begun_s, said_s = time.monotonic(), 0.0
    submitted: dict[str, TrueJob] = {}
    while True:
        now_s = time.monotonic() - begun_s
        while len(submitted) < len(jobs) and jobs[len(submitted)].submit_s <= now_s:
            place = len(submitted)
            submitted[_submit(stage, jobs[place], orders[place], users.ALICE if place % 2 else users.BOB)] = jobs[place]
        running, waiting = _queue(stage.cluster)
        if now_s - said_s > SAY_S:
            over = len(submitted) - running - waiting
            say(f"{name}: {len(submitted)} of {len(jobs)} jobs submitted, {waiting} wait, {running} run, {over} over")
            said_s = now_s
        if len(submitted) == len(jobs) and not running + waiting:
            return _accounted(stage.cluster, submitted)
        if now_s > PATIENCE * expected_s + 60:
            raise RigError(f"{name}: {running + waiting} jobs are not over after {now_s:.0f} s")
        time.sleep(LOOK_S)


@dataclass(frozen=True, slots=True)
class _Order:
    script: str
    comment: str


def _order(stage: Stage, job: TrueJob, name: str) -> _Order:
    """Return what to submit: RLHF jobs log to a run that their comment names, others only take their time."""
    if job.kind != RLHF or not stage.tracking_uri:
        return _Order(f"#!/bin/sh\nexec sleep {job.duration_s:.3f}\n", "")
    folder = f"out-{name.replace(' ', '-')}"
    run = make_run(stage.tracking_uri, folder)
    marks, scores = (",".join(f"{value:.4f}" for value in each) for each in (job.marks, job.scores))
    words = f"{stage.tracking_uri} {run} {folder} {job.duration_s:.3f} {marks} {scores}"
    comment = f"mlflow_run={run} evalstop=enforce evalstop_output={folder}"
    return _Order(f"#!/bin/sh\nexec /usr/bin/python3 -I -S {stage.trainer} {words}\n", comment)


def _submit(stage: Stage, job: TrueJob, order: _Order, user: str) -> str:
    options = (f"--gpus={job.gpus}", "--nodes=1", f"--account={ACCOUNT}", f"--job-name={job.kind}")
    if stage.limits and job.estimate_s is not None:
        options = (*options, f"--time={ceil(job.estimate_s)}")
    return stage.cluster.sbatch(user, order.script, *options, f"--comment={order.comment}", "--output=/dev/null")


def _queue(cluster: Cluster) -> tuple[int, int]:
    """Return how many jobs hold GPUs, those that are ending included, and how many wait."""
    states = cluster.squeue("-o", "%T").split()
    waiting = states.count("PENDING")
    return len(states) - waiting, waiting


def _accounted(cluster: Cluster, submitted: Mapping[str, TrueJob]) -> list[Ran]:
    """Return what accounting says of the jobs, once it knows the end of each."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        rows = [line.split("|") for line in _sacct(cluster, submitted).splitlines()]
        if len(rows) == len(submitted) and not any("Unknown" in row for row in rows):
            return [_ran(submitted[row[0]], row) for row in rows]
        time.sleep(LOOK_S)
    raise RigError("accounting does not know how the jobs ended")


def _sacct(cluster: Cluster, submitted: Mapping[str, TrueJob]) -> str:
    return cluster.sacct("-X", "-j", ",".join(submitted), "-o", "JobID,State,Submit,Start,End")


def _ran(job: TrueJob, row: Sequence[str]) -> Ran:
    submit_s, start_s, end_s = (datetime.fromisoformat(text).timestamp() for text in row[2:])
    state = row[1].split()[0]
    if state not in {"COMPLETED", "CANCELLED"}:
        raise RigError(f"a job of the comparison ended as {state}: see the trainer's messages")
    return Ran(row[0], job, end_s - submit_s, end_s - start_s, state == "CANCELLED")
