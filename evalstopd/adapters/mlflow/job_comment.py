"""The job's comment as its own script writes it: the run is named there, and nobody else's words are lost by it.

Slurm has no compare-and-set: who read the comment before another wrote it writes that word away. So it is read right
before it is written, and once more a moment later. Needs the standard library alone, as the plugin does.
"""

import re
import secrets
import subprocess
from collections.abc import Callable, Mapping

from evalstopd.core.comment import restraint, says_keep, words_of

_COMMAND_S = 20
_MOST_WRITES = 3
_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_OLD_LINK = re.compile(r"(?<![^\s,;])mlflow_run=[^\s,;]*[\s,;]*")


def name_run(job: str, run_id: str, pause: Callable[[], object]) -> None:
    """Name the run in the job's comment until it stands there; words that vanish meanwhile are put back.

    `pause` waits for the moment after which others' writes are seen. Raises ValueError, OSError or SubprocessError
    where the run is not named.
    """
    stood = held = _comment(job)
    for _ in range(_MOST_WRITES):
        if merged(restored(stood, held), run_id) == held:
            return
        stood = merged(restored(stood, _comment(job)), run_id)
        _slurm("scontrol", "update", f"JobId={job}", f"Comment={stood}")
        pause()
        held = _comment(job)
    if f"mlflow_run={run_id}" not in words_of(held):
        raise ValueError("others write the comment at the same time")


def restored(stood: str, held: str) -> str:
    """Return the comment with the words that stood in it before and are gone.

    What holds the daemon back is put back unless the veto stands (beside another rung it is ambiguous, and nothing is
    done), leave to enforce never; any other word where its key has no other value by now.
    """
    there = words_of(held)
    keys = {"evalstop", *map(_key, there)}
    gone = [word for word in words_of(stood) if word not in there]
    back = [word for word in gone if (not says_keep(held) if restraint(word) else _key(word) not in keys)]
    return " ".join([held, *back]).lstrip()


def exact_job_id(environment: Mapping[str, str]) -> str:
    """Return the id that addresses this job alone: `A_T` for a task of an array, whose last raw id is the array's."""
    if array := environment.get("SLURM_ARRAY_JOB_ID"):
        return f"{array}_{environment['SLURM_ARRAY_TASK_ID']}"
    return environment["SLURM_JOB_ID"]


def merged(comment: str, run_id: str) -> str:
    """Put the run into a comment in place of a run named earlier; all else stays. Raises ValueError."""
    if not _RUN_ID.fullmatch(run_id):
        raise ValueError("the run's id does not fit into a comment")
    # The link comes first, as some paths cut long comments.
    return f"mlflow_run={run_id} {_OLD_LINK.sub('', comment)}".rstrip()


def comment_in(output: str, separator: str) -> str:
    """Take the comment out of squeue's answer. Raises ValueError unless it holds exactly one job."""
    comment, *rest = output.split(separator)
    if len(rest) != 1 or rest[0].strip():
        raise ValueError("squeue did not answer with exactly one job")
    return "" if comment == "(null)" else comment


def _key(word: str) -> str:
    return word.partition("=")[0]


def _comment(job: str) -> str:
    # The comment is free text with newlines in it: a separator that nobody can guess ends it.
    separator = f"~{secrets.token_hex(12)}"
    return comment_in(_slurm("squeue", "-h", "-j", job, "-O", f"Comment:{separator}"), separator)


def _slurm(*argv: str) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, errors="surrogateescape", timeout=_COMMAND_S, check=True
    )
    return done.stdout
