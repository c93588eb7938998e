"""The proof that a run belongs to a job. A tag alone never proves it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalstopd.core.model import Job, JobKey

JOB_ID_TAG = "slurm.job_id"
CLUSTER_TAG = "slurm.cluster"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a tracker says about a run, all of it writable by users: tags, parameters, status, names of metrics."""

    run_id: str
    status: str
    deleted: bool
    user: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """A running job whose comment names a run."""

    key: JobKey
    job: Job
    run_id: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven binding; `two_way` if the run's own tags name the job as well, which writing to it needs."""

    run_id: str
    two_way: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """No binding: nothing may be done with this job; `code` names the kind, `text` is the report line."""

    code: str
    text: str


def names_job(run: RunFacts, job: Job) -> bool:
    """Tell whether the run's tags name this job: its raw id and, if a cluster is named at all, its cluster."""
    cluster = run.tags.get(CLUSTER_TAG)
    return run.tags.get(JOB_ID_TAG) == str(job.raw_id) and cluster in (None, "", job.cluster)


def bind(
    claims: Iterable[Claim], runs: Mapping[str, RunFacts], holders: Mapping[str, JobKey]
) -> dict[JobKey, Bound | Refused]:
    """Decide for each claim whether the run is proven to be the job's.

    At a time one live job a run. In a dispute the one claimant that the run's tags name wins; with none or
    several, nobody does. `holders` are the jobs that runs were bound to before: only the same owner may
    take a run over.
    """
    by_run: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_run[claim.run_id].append(claim)
    decided: dict[JobKey, Bound | Refused] = {}
    for run_id, rivals in by_run.items():
        for claim in rivals:
            decided[claim.key] = _decide(claim, rivals, runs.get(run_id), holders.get(run_id))
    return decided


def _decide(claim: Claim, rivals: list[Claim], run: RunFacts | None, holder: JobKey | None) -> Bound | Refused:
    if holder is not None and holder.uid != claim.key.uid:
        return Refused("foreign-run", "the run named in the comment was bound to another owner's job before")
    if run is not None and run.deleted:
        return Refused("deleted-run", "the run named in the comment is deleted")
    two_way = run is not None and names_job(run, claim.job)
    if len(rivals) == 1:
        return Bound(claim.run_id, two_way)
    named = [rival for rival in rivals if run is not None and names_job(run, rival.job)]
    if two_way and named == [claim]:
        return Bound(claim.run_id, two_way=True)
    return Refused("disputed-run", f"{len(rivals)} jobs name the same run in their comments")
