"""Which run each job claims: what its comment says, and what the runs that call themselves the job's can prove."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.binding import UNPROVEN, Claim, Proof, Refused, RunFacts, claim_of
from evalstopd.core.metric_choice import choose
from evalstopd.core.model import JobKey
from evalstopd.core.rules import Rules
from evalstopd.errors import EvalstopError, PastCaps, Rejected
from evalstopd.loop.watched import Seen
from evalstopd.ports import RunFinder

# Jobs without a run that are looked for in one pass: the number of calls must not grow with that of jobs.
MOST_SOUGHT = 32


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of all jobs; those refused before any run is read; those whose runs could not be looked for."""

    made: Mapping[JobKey, Claim] = field(default_factory=dict)
    refused: Mapping[JobKey, Refused] = field(default_factory=dict)
    unknown: Mapping[JobKey, EvalstopError] = field(default_factory=dict)


def sought(jobs: Iterable[Seen], rules: Rules, now_s: float) -> list[Seen]:
    """Return the jobs whose run is looked for in this pass, others in the next: by lot where there are too many."""

    def lot(one: Seen) -> bytes:
        return hashlib.sha256(f"{one.key.text} {now_s}".encode()).digest()

    return sorted((one for one in jobs if one.seeks(rules, now_s)), key=lot)[:MOST_SOUGHT]


def standing_claims(seen: Iterable[Seen]) -> dict[JobKey, Claim]:
    """Return what the jobs claim as far as it is known without looking."""
    return {
        one.key: Claim(one.key, one.job, one.run_id, Proof.COMMENT if one.wishes.run_id else Proof(one.watch.proof))
        for one in seen
        if one.run_id is not None
    }


def look_up(finder: RunFinder, cluster: str, jobs: Sequence[Seen], rules: Rules) -> Claims:
    """Return what these jobs claim after a look at the runs that call themselves theirs."""
    if rules.trust.comment_only or not jobs:
        return Claims(standing_claims(jobs))
    answers = finder.naming(cluster, [one.job.raw_id for one in jobs])
    made: dict[JobKey, Claim] = {}
    refused: dict[JobKey, Refused] = {}
    unknown: dict[JobKey, EvalstopError] = {}
    for one in jobs:
        match _claim(one, answers.get(one.job.raw_id, ()), rules):
            case Claim() as claim:
                made[one.key] = claim
            case Refused() as refusal:
                refused[one.key] = refusal
            case EvalstopError() as error:
                unknown[one.key] = error
    return Claims(made, refused, unknown)


def _claim(
    one: Seen, answer: tuple[RunFacts, ...] | EvalstopError, rules: Rules
) -> Claim | Refused | EvalstopError | None:
    if isinstance(answer, Rejected):
        # Anyone may call a run this job's: a flood must not undo what the owner wrote into the comment.
        if one.wishes.run_id is None:
            code = "quarantine-runs" if isinstance(answer, PastCaps) else "unclear-runs"
            return Refused(code, f"its run cannot be told from others: {answer}")
        answer = ()
    if isinstance(answer, EvalstopError):
        return answer
    metric = one.standing.terms.metric
    fit = [run for run in answer if metric or choose(run.metrics, rules.patterns) is not None]
    claim = claim_of(one.key, one.job, one.wishes.run_id, metric, fit, rules.trust)
    # A run that is over is no trouble; one that goes on and has lost its proof is.
    if claim is None and one.held in {run.run_id for run in answer}:
        return UNPROVEN
    return claim
