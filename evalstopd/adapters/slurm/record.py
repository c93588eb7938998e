"""One squeue record as a job; numbers that tell jobs apart are read strictly, for a wrong one could cost a job."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstopd.adapters.slurm.gpus import Tres, gpus_of
from evalstopd.adapters.slurm.nodes import expand
from evalstopd.adapters.slurm.run import printable
from evalstopd.core.model import Job, Phase
from evalstopd.errors import Unavailable
from evalstopd.slurmtext.limits import finite, limit_of
from evalstopd.slurmtext.states import phase_of

FIELDS = (
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "HetJobID",
    "UserID",
    "UserName",
    "State",
    "SubmitTime",
    "StartTime",
    "EndTime",
    "RestartCnt",
    "NumNodes",
    "NumTasks",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "tres-per-task",
    "Account",
    "QOS",
    "Partition",
    "PriorityLong",
    "Nice",
    "NodeList",
    "EligibleTime",
    "TimeLimit",
    "Reason",
    "Requeue",
    "Cluster",
    "Comment",
    "Name",
    "WorkDir",
)
# Unset fields: numbers and times print N/A or NONE, text prints (null); an owner's "(null)" reads the same.
_UNSET = frozenset({"", "N/A", "NONE", "(null)", "Unknown"})
_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Row:
    """A job as listed; `ended_s` (seconds since the epoch) is only set where it has ended."""

    job: Job
    ended_s: int | None


def read_record(values: Sequence[str]) -> Row:
    """Read one record of `FIELDS`; raises Unavailable for anything that is not as Slurm writes it."""
    record = dict(zip(FIELDS, values, strict=True))
    phase = phase_of(record["State"])
    raw_id = _number(record, "JobID")
    job = Job(
        cluster=_word(record, "Cluster"),
        job_id=_job_id(record, raw_id),
        raw_id=raw_id,
        uid=_number(record, "UserID"),
        user=record["UserName"],
        phase=phase,
        state=record["State"],
        submitted_s=_number(record, "SubmitTime"),
        # A pending job's start is a forecast, a running job's end its time limit.
        started_s=None if phase is Phase.PENDING else _optional(record, "StartTime"),
        restarts=_number(record, "RestartCnt"),
        gpus=_gpus(record),
        account=_text(record, "Account"),
        qos=_text(record, "QOS"),
        partition=_text(record, "Partition"),
        priority=_number(record, "PriorityLong"),
        nice=_number(record, "Nice"),
        comment=_text(record, "Comment"),
        name=_text(record, "Name"),
        work_dir=_text(record, "WorkDir"),
        nodes=expand(record["NodeList"]),
        het_id=_optional(record, "HetJobID"),
        limit_end_s=_limit_end(record) if phase in (Phase.RUNNING, Phase.SUSPENDED) else None,
        # Slurm's own scheduling never gives a waiting job less than 1: 0 means held, whoever holds it.
        held=phase is Phase.PENDING and _number(record, "PriorityLong") == 0,
        eligible_s=_optional(record, "EligibleTime"),
        time_limit_s=limit_of(record["TimeLimit"]),
        reason=_text(record, "Reason"),
        may_requeue=record["Requeue"] == "1",
    )
    return Row(job, _optional(record, "EndTime") if phase is Phase.ENDED else None)


def _job_id(record: Mapping[str, str], raw_id: int) -> str:
    """Return `A_T` for a task, `A_[...]` for the tasks of an array that still wait together, else the raw id."""
    tasks = record["ArrayTaskID"]
    if tasks in _UNSET:
        return str(raw_id)
    array = _number(record, "ArrayJobID")
    return f"{array}_{tasks}" if tasks.isascii() and tasks.isdigit() else f"{array}_[{tasks}]"


def _gpus(record: Mapping[str, str]) -> int:
    tres = Tres(
        allotted=record["tres-alloc"],
        per_job=record["tres-per-job"],
        per_node=record["tres-per-node"],
        per_task=record["tres-per-task"],
        nodes=_least(record["NumNodes"]),
        tasks=_least(record["NumTasks"]),
    )
    return gpus_of(tres)


def _least(text: str) -> int:
    """Return the lower end of a count such as `2`, `1-4` (asked for) or `1K`; 1 where there is none yet."""
    found = re.match(r"([0-9]{1,9})(K?)", text)
    return int(found[1]) * (1024 if found[2] else 1) if found else 1


def _number(record: Mapping[str, str], field: str) -> int:
    text = record[field]
    if not _NUMBER.fullmatch(text):
        raise Unavailable(f"squeue's answer has a {field} that is no number: {printable(text, 40)}")
    return int(text)


def _limit_end(record: Mapping[str, str]) -> int | None:
    """Return when the time limit ends a job that has started; None where that is no limit."""
    started_s, end_s = _optional(record, "StartTime"), _optional(record, "EndTime")
    if started_s is None or end_s is None:
        return end_s
    return end_s if finite(end_s - started_s) is not None else None


def _optional(record: Mapping[str, str], field: str) -> int | None:
    return None if record[field] in _UNSET else _number(record, field)


def _word(record: Mapping[str, str], field: str) -> str:
    text = _text(record, field)
    if not text:
        raise Unavailable(f"squeue's answer has a record without {field}")
    return text


def _text(record: Mapping[str, str], field: str) -> str:
    return "" if record[field] in {"(null)", "N/A"} else record[field]
