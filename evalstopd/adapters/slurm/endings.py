"""How lives of jobs ended: accounting's word, or the controller's, which remembers for MinJobAge only."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstopd.adapters.slurm.ids import exact
from evalstopd.adapters.slurm.queue import list_jobs
from evalstopd.adapters.slurm.record import Row
from evalstopd.adapters.slurm.run import Runner, succeed
from evalstopd.core.model import Ending, Life, Phase
from evalstopd.errors import Unavailable
from evalstopd.ports import EndingQuery
from evalstopd.slurmtext.states import REQUEUED, RESIZING, first_word, phase_of

# No field here is a user's text, so lines and bars part the records safely.
_FIELDS = ("JobID", "JobIDRaw", "State", "Submit", "End", "ExitCode")
# Earlier lives too, whole jobs without their steps. --allusers: others' jobs are the daemon's business.
_SACCT = ("sacct", "--allocations", "--duplicates", "--allusers", "--noheader", "--parsable2")
_EPOCH = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class _Record:
    """One life in accounting; times are None where accounting does not know them."""

    job_id: str
    state: str
    submitted_s: int | None
    ended_s: int | None
    exit_code: str


def read_endings(run: Runner, queries: Sequence[EndingQuery]) -> dict[EndingQuery, Ending]:
    """Tell how these lives ended; those not known to have ended are left out.

    One sacct call; where accounting is off or away, one squeue call instead. Raises Unavailable where
    neither answers.
    """
    job_ids = exact(query.job_id for query in queries)
    try:
        return _by_accounting(run, job_ids, queries)
    except Unavailable:
        return _by_controller(run, job_ids, queries)


def _by_accounting(run: Runner, job_ids: Sequence[str], queries: Sequence[EndingQuery]) -> dict[EndingQuery, Ending]:
    arguments = (f"--format={','.join(_FIELDS)}", f"--jobs={','.join(job_ids)}")
    lines = succeed(run((*_SACCT, *arguments), {}), "sacct").splitlines()
    records = [_read(line) for line in lines]
    endings = ((query, _ending_of(query, records)) for query in queries)
    return {query: ending for query, ending in endings if ending is not None}


def _read(line: str) -> _Record:
    fields = line.split("|")
    if len(fields) != len(_FIELDS):
        raise Unavailable(f"sacct's answer has a record of {len(fields)} fields, not {len(_FIELDS)}")
    job_id, raw_id, state, submit, end, exit_code = fields
    # A task's raw id may be the array's own; a component of a heterogeneous job (28+1) only has its raw id.
    exact_id = job_id if "_" in job_id else raw_id
    return _Record(exact_id, first_word(state), _epoch(submit), _epoch(end), exit_code)


def _epoch(text: str) -> int | None:
    return int(text) if _EPOCH.fullmatch(text) else None


def _ending_of(query: EndingQuery, records: Sequence[_Record]) -> Ending | None:
    """Return the end of the one life submitted then; a requeue within the same second leaves two: no answer."""
    submitted = (query.job_id, query.life.submitted_s)
    lives = [one for one in records if (one.job_id, one.submitted_s) == submitted and one.state != RESIZING]
    if len(lives) != 1 or not _is_over(lives[0].state):
        return None
    return Ending(lives[0].state, lives[0].ended_s, lives[0].exit_code)


def _is_over(state: str) -> bool:
    return state == REQUEUED or phase_of(state) is Phase.ENDED


def _by_controller(run: Runner, job_ids: Sequence[str], queries: Sequence[EndingQuery]) -> dict[EndingQuery, Ending]:
    rows: Mapping[str, Row] = {row.job.job_id: row for row in list_jobs(run, job_ids)}
    endings = ((query, _seen_end(query.life, rows.get(query.job_id))) for query in queries)
    return {query: ending for query, ending in endings if ending is not None}


def _seen_end(life: Life, row: Row | None) -> Ending | None:
    if row is None:
        return None
    if row.job.life == life and row.job.phase is Phase.ENDED:
        return Ending(row.job.state, row.ended_s, source="controller")
    # The same id with more restarts is the same job in a later life, so this one was requeued.
    if row.job.restarts > life.restarts and row.job.submitted_s >= life.submitted_s:
        return Ending(REQUEUED, None, source="controller")
    return None
