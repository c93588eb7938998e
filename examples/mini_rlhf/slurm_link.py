"""Tie an MLflow run to the Slurm job it runs in: one line in any training script, after `mlflow.start_run()`.

    slurm_link.link_active_run()

The run gets the tags `slurm.job_id` and `slurm.cluster`, the job's comment the word `mlflow_run=<run id>`.
Other words of the comment stay: they may be someone's wishes. The file needs nothing but MLflow: copy it.
"""

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import mlflow

COMMAND_S = 30
MOST_WRITES = 3
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
OLD_LINK = re.compile(r"(?<![^\s,;])mlflow_run=[^\s,;]*[\s,;]*")


def link_active_run(environment: Mapping[str, str] = os.environ) -> bool:
    """Link the active run to this Slurm job, both ways; outside a job this does nothing.

    Training matters more than its link: a failure is one line on stderr. Returns whether the link stands.
    """
    run = mlflow.active_run()
    job = exact_job_id(environment)
    if run is None or job is None:
        return False
    mlflow.set_tags(run_tags(environment))
    try:
        name_run(job, run.info.run_id)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"slurm_link: the comment of job {job} does not name the run: {error}", file=sys.stderr)
        return False
    return True


def name_run(job: str, run_id: str, pause: Callable[[], object] = lambda: time.sleep(1)) -> None:
    """Name the run in the job's comment, and look a moment later whether another's write took it away again.

    Slurm has no compare-and-set. Raises ValueError where others write it away each time.
    """
    for _ in range(MOST_WRITES):
        comment = read_comment(job)
        if merge(comment, run_id) == comment:
            return
        write_comment(job, merge(comment, run_id))
        pause()
    if f"mlflow_run={run_id}" not in read_comment(job):
        raise ValueError("others write it at the same time")


def exact_job_id(environment: Mapping[str, str]) -> str | None:
    """Return the id that addresses this job alone: `A_T` for a task of an array, None outside Slurm.

    The raw id will not do for a task: the last one's is the array's, and would hit all its sisters.
    """
    if array := environment.get("SLURM_ARRAY_JOB_ID"):
        return f"{array}_{environment['SLURM_ARRAY_TASK_ID']}"
    return environment.get("SLURM_JOB_ID")


def run_tags(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that name the job: the raw id, and the cluster where Slurm tells it."""
    tags = {"slurm.job_id": environment["SLURM_JOB_ID"]}
    if cluster := environment.get("SLURM_CLUSTER_NAME"):
        tags["slurm.cluster"] = cluster
    return tags


def merge(comment: str, run_id: str) -> str:
    """Put the run into a comment, in place of a run named earlier; all else stays as it is.

    The link comes first, as some paths cut long comments. Raises ValueError where the id does not fit in.
    """
    if not RUN_ID.fullmatch(run_id):
        raise ValueError(f"{run_id!r} is no run id that fits into a comment")
    return f"mlflow_run={run_id} {OLD_LINK.sub('', comment)}".rstrip()


def parse_comment(output: str, separator: str) -> str:
    """Take the comment out of squeue's answer; raises ValueError unless it holds exactly one job."""
    comment, *rest = output.split(separator)
    if len(rest) != 1 or rest[0].strip():
        raise ValueError("squeue did not answer with exactly one job")
    return "" if comment == "(null)" else comment


def read_comment(job: str) -> str:
    # The comment is free text with newlines in it: a separator that nobody can guess ends it.
    separator = f"~{secrets.token_hex(12)}"
    return parse_comment(_slurm("squeue", "-h", "-j", job, "-O", f"Comment:{separator}"), separator)


def write_comment(job: str, comment: str) -> None:
    _slurm("scontrol", "update", f"JobId={job}", f"Comment={comment}")


def _slurm(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, errors="surrogateescape", timeout=COMMAND_S, check=True)
    return done.stdout
