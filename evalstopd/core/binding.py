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
class Binding:
    """A run proven to be a job's, from a moment on."""

    key: JobKey
    run_id: str
    proof: str
    two_way: bool
    since_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A running job whose comment names a run."""

    key: JobKey
    job: Job
    run_id: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven binding; `two_way` if the run's own tags name the job as well, which writing to it needs.

    `taken_over` if another job had the run before.
    """

    run_id: str
    two_way: bool
    taken_over: bool = False


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
    claims: Iterable[Claim], runs: Mapping[str, RunFacts], holders: Mapping[str, Binding]
) -> dict[JobKey, Bound | Refused]:
    """Decide for each claim whether the run is proven to be the job's.

    At a time one live job a run. `holders` are the runs' last bindings: only the same owner may take a run over,
    unless the run was claimed one way only and its tags name this job. Who may not take it is no rival either. In
    a dispute the one claimant that the run's tags name wins; with none or several, nobody does.
    """
    by_run: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_run[claim.run_id].append(claim)
    decided: dict[JobKey, Bound | Refused] = {}
    for run_id, all_claims in by_run.items():
        run, holder = runs.get(run_id), holders.get(run_id)
        rivals = [claim for claim in all_claims if not _foreign(claim, run, holder)]
        for claim in all_claims:
            taken_over = holder is not None and holder.key != claim.key
            decided[claim.key] = _decide(claim, rivals, run, taken_over=taken_over)
    return decided


def _named(claim: Claim, run: RunFacts | None) -> bool:
    return run is not None and names_job(run, claim.job)


def _foreign(claim: Claim, run: RunFacts | None, holder: Binding | None) -> bool:
    if holder is None or holder.key.uid == claim.key.uid:
        return False
    return holder.two_way or not _named(claim, run)


def _decide(claim: Claim, rivals: list[Claim], run: RunFacts | None, *, taken_over: bool) -> Bound | Refused:
    if claim not in rivals:
        return Refused("foreign-run", "the run named in the comment was bound to another owner's job before")
    if run is not None and run.deleted:
        return Refused("deleted-run", "the run named in the comment is deleted")
    if len(rivals) == 1:
        return Bound(claim.run_id, _named(claim, run), taken_over)
    if [rival for rival in rivals if _named(rival, run)] == [claim]:
        return Bound(claim.run_id, two_way=True, taken_over=taken_over)
    return Refused("disputed-run", f"{len(rivals)} jobs name the same run in their comments")
