"""What the demo plays: a full cluster of training jobs, five of them over-optimising, and jobs that wait for GPUs."""

from dataclasses import dataclass
from pathlib import Path

from mini_rlhf.seeds import HACKING_SEEDS, HEALTHY_SEEDS

from .rig import users
from .rig.cluster import Cluster

METRIC = "eval/gold_reward"
RULE = "recommended"
GPUS = 8
# Notes to the hundredth when it starts; goes on until the demo is over, so that each stop feeds another one.
NEXT = """#!/bin/sh
date +%s.%N >"started-$SLURM_JOB_ID"
n=0
while [ ! -e "{over}" ] && [ $n -lt 300 ]; do sleep 1; n=$((n + 1)); done
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One job of the scene: its Slurm id, whose it is, what it does."""

    job: str
    user: str
    kind: str
    trains: bool


def cast() -> list[tuple[str, float, int, str]]:
    """Return the training runs (kind, kl, seed, user), over-optimising and healthy ones of both users mixed."""
    hacking = [("over-optimising", 0.0, seed) for seed in HACKING_SEEDS]
    healthy = [("healthy", 0.4, seed) for seed in HEALTHY_SEEDS[:3]]
    both = [*hacking, *healthy]
    owners = (users.ALICE, users.BOB)
    return [(kind, kl, seed, owners[number % 2]) for number, (kind, kl, seed) in enumerate(both)]


def over(cluster: Cluster) -> Path:
    """Return the file whose appearance ends the jobs that waited."""
    return cluster.directory / "over"


def started(cluster: Cluster, part: Part) -> float | None:
    """Return when a job that waited printed its first line, in seconds since the epoch."""
    file = cluster.work(part.user) / f"started-{part.job}"
    return float(file.read_text()) if file.exists() and file.read_text().strip() else None


def submit(cluster: Cluster, python: str, examples: Path, tracking_uri: str, *, replay: bool) -> list[Part]:
    """Fill the cluster with training jobs and queue a job behind each stop that should come."""
    parts = []
    environment = {
        "PYTHON": python,
        "EXAMPLES": str(examples),
        "MLFLOW_TRACKING_URI": tracking_uri,
        "PROGRAM": "replay" if replay else "train",
        # One thread a run, and no chatter in the job's output.
        "OMP_NUM_THREADS": "1",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    }
    exported = ",".join(["NONE", *(f"{key}={value}" for key, value in environment.items())])
    script = str(examples / "mini_rlhf" / "job.sh")
    for kind, kl, seed, user in cast():
        name = f"{kind}-{seed}"
        argv = [
            "sbatch", "--parsable", f"--gpus={GPUS}", "--nodes=1", "--account=ml", f"--job-name={name}",
            f"--comment=evalstop=enforce evalstop_output=out-{name}", f"--export={exported}", script,
            "--kl", str(kl), "--seed", str(seed), "--output-dir", f"out-{name}",
        ]  # fmt: skip
        done = cluster.as_user(user, argv)
        parts.append(Part(_job_id(done.stdout, done.stderr), user, f"{kind}, kl {kl:g}, seed {seed}", trains=True))
    for number in range(len(HACKING_SEEDS)):
        user = (users.BOB, users.ALICE)[number % 2]
        options = (f"--gpus={GPUS}", "--nodes=1", "--account=ml", "--job-name=next")
        job = cluster.sbatch(user, NEXT.format(over=over(cluster)), *options)
        parts.append(Part(job, user, "waits for GPUs", trains=False))
    return parts


def _job_id(answer: str, error: str) -> str:
    if not answer.strip():
        raise RuntimeError(f"sbatch: {error.strip()}")
    return answer.strip().partition(";")[0]
