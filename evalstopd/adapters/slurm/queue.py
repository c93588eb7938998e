"""What squeue is asked, and the checks on its answer as a whole: in doubt there is no answer."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from evalstopd.adapters.slurm.frame import fresh_frame
from evalstopd.adapters.slurm.record import FIELDS, Row, read_record
from evalstopd.adapters.slurm.run import Runner, printable, succeed
from evalstopd.errors import Unavailable

# Hidden partitions too, this cluster alone. Never --array: it lists one raw id several times.
_SQUEUE = ("squeue", "--noheader", "--all", "--local")
_UNKNOWN_ID = "Invalid job id specified"
_CLUSTER_NAME = re.compile(r"^ClusterName\s*=\s*(\S+)\s*$", re.MULTILINE)


def list_queue(run: Runner) -> tuple[Row, ...]:
    """List what pends, runs, is suspended or ends. Raises Unavailable."""
    return _ask(run, ())


def list_jobs(run: Runner, job_ids: Sequence[str]) -> tuple[Row, ...]:
    """List these jobs as they are, those that ended within MinJobAge too. Raises Unavailable.

    `job_ids` are exact ids; unknown ones are left out.
    """
    return _ask(run, ("--states=all", f"--jobs={','.join(job_ids)}"))


def configured_name(run: Runner) -> str:
    """Return the cluster's name from the controller's configuration: an empty queue does not tell it."""
    answer = succeed(run(("scontrol", "show", "config"), {}), "scontrol show config")
    found = _CLUSTER_NAME.search(answer)
    if not found:
        raise Unavailable("scontrol show config names no cluster")
    return found[1]


def _ask(run: Runner, options: Sequence[str]) -> tuple[Row, ...]:
    frame = fresh_frame(FIELDS)
    # By the environment, not as --Format: arguments can be read by every user of the machine, who could
    # put the separator of this very call into a comment.
    answer = run((*_SQUEUE, *options), {"SQUEUE_FORMAT2": frame.format})
    # A single unknown id is an error, several are not (22.05).
    if options and answer.code == 1 and not answer.out and answer.err.strip().endswith(_UNKNOWN_ID):
        return ()
    rows = tuple(read_record(values) for values in frame.split(succeed(answer, "squeue")))
    _check(rows)
    return rows


def _check(rows: Sequence[Row]) -> None:
    clusters = sorted({row.job.cluster for row in rows})
    if len(clusters) > 1:
        raise Unavailable(f"squeue's answer is of several clusters: {printable(', '.join(clusters))}")
    _check_once("raw id", (row.job.raw_id for row in rows))
    _check_once("job id", (row.job.job_id for row in rows))


def _check_once(what: str, ids: Iterable[object]) -> None:
    twice = [str(key) for key, count in Counter(ids).items() if count > 1]
    if twice:
        raise Unavailable(f"squeue lists a {what} twice: {printable(', '.join(twice))}")
