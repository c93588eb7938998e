"""How long earlier lives of requeued jobs ran, by accounting: what they have attained."""

from collections import defaultdict
from collections.abc import Sequence

from evalstopd.adapters.slurm.ids import exact
from evalstopd.adapters.slurm.run import Runner, succeed
from evalstopd.errors import Unavailable
from evalstopd.ports import EndingQuery

# No field here is a user's text, so lines and bars part the records safely.
_SACCT = ("sacct", "--allocations", "--duplicates", "--allusers", "--noheader", "--parsable2")
_FIELDS = ("JobID", "JobIDRaw", "Submit", "ElapsedRaw")


def read_served(run: Runner, queries: Sequence[EndingQuery]) -> dict[EndingQuery, float]:
    """Return for each life the seconds that the job ran before it, in one sacct call. Raises Unavailable.

    Accounting lags behind: a job of which it does not know all earlier lives yet is left out.
    """
    job_ids = exact(query.job_id for query in queries)
    arguments = (f"--format={','.join(_FIELDS)}", f"--jobs={','.join(job_ids)}")
    lives: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for line in succeed(run((*_SACCT, *arguments), {}), "sacct").splitlines():
        job_id, submitted_s, ran_s = _read(line)
        lives[job_id].append((submitted_s, ran_s))
    found = {query: _before(query, lives[query.job_id]) for query in queries}
    return {query: ran_s for query, ran_s in found.items() if ran_s is not None}


def _read(line: str) -> tuple[str, int, float]:
    fields = line.split("|")
    if len(fields) != len(_FIELDS) or not (fields[2].isdecimal() and fields[3].isdecimal()):
        raise Unavailable(f"sacct's answer has a record that is none: {len(fields)} fields")
    job_id, raw_id, submitted, ran = fields
    return (job_id if "_" in job_id else raw_id, int(submitted), float(ran))


def _before(query: EndingQuery, lives: Sequence[tuple[int, float]]) -> float | None:
    """Return what ran before a life; a reused id has lives that are older than the job, and more than its restarts."""
    earlier = sorted(each for each in lives if each[0] < query.life.submitted_s)
    if len(earlier) < query.life.restarts:
        return None
    return sum(ran_s for _, ran_s in earlier[len(earlier) - query.life.restarts :])
