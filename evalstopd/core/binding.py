"""The proof that a run belongs to a job: the job's comment, a seal in the run, or a tag where users are checked."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from evalstopd.core.mac import MAC_TAG, SKEW_S, SiteKey
from evalstopd.core.model import Job, JobKey

JOB_ID_TAG = "slurm.job_id"
CLUSTER_TAG = "slurm.cluster"
OUTPUT_PARAMS = ("output_dir", "trainer/default_local_dir")
"""Where a trainer logs its output folder: Hugging Face's and most scripts; verl."""
PARAMS = frozenset({*OUTPUT_PARAMS, "metric_for_best_model", "greater_is_better"})
"""The parameters of a run that anything is decided by; a trainer logs 150 more, which nobody keeps."""


def of_note(params: Mapping[str, str]) -> dict[str, str]:
    """Return those parameters of a run that anything is decided by."""
    return {key: params[key] for key in PARAMS & params.keys()}


class Proof(StrEnum):
    """What proves it, the strongest first.

    COMMENT: munge says who wrote the job's comment. MAC: only the job knows the secret that the seal was made with.
    TAG: the server checked who made the run, and that is the job's owner.
    """

    COMMENT = "comment"
    MAC = "mac"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Trust:
    """Which proofs count beside the comment: seals where there is a site key, tags where the server checks users."""

    key: SiteKey | None = None
    tags: bool = False

    @property
    def comment_only(self) -> bool:
        """Tell whether runs need not be looked for: what they say of themselves proves nothing here."""
        return self.key is None and not self.tags


COMMENT_ONLY = Trust()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a tracker says about a run, all of it writable by users: tags, parameters, status, names of metrics.

    `params` are those of PARAMS; `started_ms` is the client's clock; `models` is how many logged models it has. `maker`
    is who made the run by the word of the client that did: alone of all, nobody can change it afterwards; it may be
    empty. `labels` is with how many models, its own or others', its values may have been logged.
    """

    run_id: str
    status: str
    deleted: bool
    user: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: frozenset[str] = frozenset()
    started_ms: int | None = None
    experiment_id: str = ""
    models: int = 0
    maker: str = ""
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Binding:
    """A run proven to be a job's, from a moment on; what was proven both ways once is not taken back.

    Where anybody may write, a tag that says otherwise by now proves nothing.
    """

    key: JobKey
    run_id: str
    proof: str
    two_way: bool
    since_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A running job and the run that it claims by one proof."""

    key: JobKey
    job: Job
    run_id: str
    proof: Proof = Proof.COMMENT


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven binding; `two_way` if job and run name each other, which writing to the run needs.

    `taken_over` if another job had the run before.
    """

    run_id: str
    two_way: bool
    taken_over: bool = False
    proof: Proof = Proof.COMMENT


@dataclass(frozen=True, slots=True)
class Refused:
    """No binding: nothing may be done with this job; `code` names the kind, `text` is the report line."""

    code: str
    text: str


def names_job(run: RunFacts, job: Job) -> bool:
    """Tell whether the run's tags name this job: its raw id and, if a cluster is named at all, its cluster."""
    cluster = run.tags.get(CLUSTER_TAG)
    return run.tags.get(JOB_ID_TAG) == str(job.raw_id) and cluster in (None, "", job.cluster)


def proof_of(run: RunFacts, job: Job, trust: Trust) -> Proof | None:
    """Return the stronger of the proofs, beside the comment, that the run is this life's of the job.

    A tag names no life: the run must have been made in this one, by the job's owner, and name the cluster, too.
    """
    if trust.key is not None and trust.key.sealed(job, run.run_id, run.tags.get(MAC_TAG, "")):
        return Proof.MAC
    if not trust.tags or not names_job(run, job) or run.tags.get(CLUSTER_TAG) != job.cluster:
        return None
    if not run.user or run.user != job.user or run.started_ms is None or job.started_s is None:
        return None
    return Proof.TAG if run.started_ms >= 1000 * (job.started_s - SKEW_S) else None


def claim_of(
    key: JobKey, job: Job, named: str | None, metric: str, found: Sequence[RunFacts], trust: Trust
) -> Claim | Refused | None:
    """Return the one run that the job claims: the one its comment names, or the only one otherwise proven.

    `found` are running runs that call themselves the job's. Only those with the job's metric count (without
    one: all); two of them, or another one than the comment names, are ambiguous. None: no run is proven, or not yet.
    """
    proven = {
        run.run_id: proof
        for run in found
        if not run.deleted
        and (not metric or metric in run.metrics)
        and (proof := proof_of(run, job, trust)) is not None
    }
    if named is not None:
        if proven.keys() - {named}:
            return Refused("ambiguous-runs", "the comment names one run, and another one is proven to be the job's")
        return Claim(key, job, named)
    if len(proven) > 1:
        return Refused("ambiguous-runs", f"{len(proven)} running runs with the metric are proven to be the job's")
    return next((Claim(key, job, run_id, proof) for run_id, proof in proven.items()), None)


def bind(
    claims: Iterable[Claim],
    runs: Mapping[str, RunFacts],
    holders: Mapping[str, Binding],
    trust: Trust = COMMENT_ONLY,
    living: AbstractSet[JobKey] = frozenset(),
) -> dict[JobKey, Bound | Refused]:
    """Decide for each claim whether the run is proven to be the job's.

    At a time one live job a run. `holders` are the runs' last bindings, `living` the jobs in the queue: only the same
    owner may take a run over, unless the run was claimed one way only and it names this job, or that claim's job is
    over: else anybody could keep a run from its owner for good, by naming it once. Who may not take it is no rival
    either; nor is, beside who made the run, anybody else. In a dispute the one claimant that the run names wins; with
    none or several, nobody does.
    """
    claims = tuple(claims)
    living = living | {claim.key for claim in claims}
    by_run: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_run[claim.run_id].append(claim)
    decided: dict[JobKey, Bound | Refused] = {}
    for run_id, all_claims in by_run.items():
        run, holder = runs.get(run_id), holders.get(run_id)
        unproven = frozenset(claim.key for claim in all_claims if _unproven(claim, run, trust))
        named = frozenset(claim.key for claim in all_claims if _named(claim, run, trust))
        holds = holder if holder is not None and (holder.two_way or holder.key in living) else None
        makers = frozenset(claim.key for claim in all_claims if _made(claim, run))
        rivals = [
            each
            for each in all_claims
            if each.key not in unproven and (each.key in makers if makers else not _foreign(each, named, holds))
        ]
        for claim in all_claims:
            taken_over = holder is not None and holder.key != claim.key
            refused = UNPROVEN if claim.key in unproven else None
            if refused is None and claim not in rivals:
                refused = _anothers(claim, holder, made=bool(makers))
            decided[claim.key] = refused or _decide(claim, rivals, named, run, taken_over=taken_over)
    return decided


UNPROVEN = Refused("unproven-run", "the run is no longer proven to be the job's")


def _unproven(claim: Claim, run: RunFacts | None, trust: Trust) -> bool:
    """Tell whether a run that the comment does not name has lost its proof since it was found."""
    return run is not None and claim.proof is not Proof.COMMENT and proof_of(run, claim.job, trust) is None


def _named(claim: Claim, run: RunFacts | None, trust: Trust) -> bool:
    """Tell whether job and run name each other.

    The comment is the job's word, the tag the run's. A seal is both: only the job can make it, for this run alone,
    and it stands in the run. Without the comment a tag is the run's word alone.
    """
    if run is None:
        return False
    by_tags = claim.proof is Proof.COMMENT and names_job(run, claim.job)
    return by_tags or proof_of(run, claim.job, trust) is Proof.MAC


def _made(claim: Claim, run: RunFacts | None) -> bool:
    return run is not None and run.maker != "" and run.maker == claim.job.user


def _foreign(claim: Claim, named: frozenset[JobKey], holder: Binding | None) -> bool:
    if holder is None or holder.key.uid == claim.key.uid:
        return False
    return holder.two_way or claim.key not in named


def _decide(
    claim: Claim, rivals: list[Claim], named: frozenset[JobKey], run: RunFacts | None, *, taken_over: bool
) -> Bound | Refused:
    if run is not None and run.deleted:
        return Refused("deleted-run", "the run that the job claims is deleted")
    two_way = claim.key in named
    only_named = two_way and not any(each.key in named for each in rivals if each.key != claim.key)
    if len(rivals) == 1 or only_named:
        return Bound(claim.run_id, two_way, taken_over, claim.proof)
    return Refused("disputed-run", f"{len(rivals)} jobs claim the same run; {_way_out(claim)}")


def _anothers(claim: Claim, holder: Binding | None, *, made: bool) -> Refused:
    """Return that another owner's job has the run, and what its owner can do: nothing against a proof both ways."""
    if made:
        return Refused("foreign-run", "the run that the job claims was made by another owner, whose job claims it")
    before = "the run that the job claims was bound to another owner's job before"
    proven = holder is not None and holder.two_way
    return Refused("foreign-run", before if proven else f"{before}, which is not over yet; {_way_out(claim)}")


def _way_out(claim: Claim) -> str:
    return f"it is this job's at once where the run's own tag says so: {JOB_ID_TAG}={claim.job.raw_id}"
