"""Who yields to whom: running jobs that are requeued so that the first waiting job of the ranking can start."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from evalstopd.core.model import Job, JobKey, JobView, Life, Phase, Rung
from evalstopd.core.policies import Policy
from evalstopd.core.policies.las import Las

WINDOW_S = 3600.0
MOST_TRIES = 3
YIELDED = "preempted"
"""The code of what is said of a job that yields."""
PATIENCE_S = 300.0
"""A request that was not seen to be fulfilled for so long is given up."""
RESOURCES = "Resources"
"""Slurm's reason of the one job of a partition that starts next, once there is room."""


@dataclass(frozen=True, slots=True)
class PreemptRules:
    """When a running job may be requeued for a waiting one. Times in seconds.

    `cost_s` is how long Slurm keeps a requeued job from starting again. Nobody yields who has run for less than
    `min_run_s` in this life, whose last verified checkpoint is older than `fresh_s`, or who has yielded `per_job`
    times; within an hour `per_hour` jobs yield at most.
    """

    policy: Policy
    cost_s: float = 120.0
    min_run_s: float = 1800.0
    fresh_s: float = 900.0
    per_hour: int = 4
    per_job: int = 2


class PreemptState(StrEnum):
    """ASKED: recorded, the request may be on its way. DONE: the job was seen in a later life. Else it was not."""

    ASKED = "asked"
    DONE = "done"
    REFUSED = "refused"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Preemption:
    """That a life of a job is asked to yield to a waiting job, the `heir`: one for a life. Times since the epoch."""

    key: JobKey
    life: Life
    heir: str
    gpus: int
    at_s: float
    saved_s: float
    reason: str
    user: str = ""
    tries: int = 0
    state: PreemptState = PreemptState.ASKED
    note: str = ""

    def ended(self, state: PreemptState, note: str = "") -> "Preemption":
        """Return it with what became of it."""
        return replace(self, state=state, note=note)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a running job beside the queue: how far one may go with it, its checkpoint, what it yielded."""

    rung: Rung = Rung.OFF
    keep: bool = False
    stopping: bool = False
    saved_s: float | None = None
    past: tuple[Preemption, ...] = ()


@dataclass(frozen=True, slots=True)
class Occupant:
    """A running job, what a policy sees of it, when its checkpoint was saved; `apart` says why it does not yield."""

    key: JobKey
    job: Job
    view: JobView
    saved_s: float
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """The jobs that yield so that the heir can start, and how much sooner all of them end, in sum."""

    heir: Job
    victims: tuple[Occupant, ...]
    gain_s: float
    reason: str


def why_apart(job: Job, facts: Facts, rules: PreemptRules, now_s: float) -> str:
    """Return why a job keeps its GPUs whoever waits; empty for one that may have to yield."""
    ran_s = now_s - job.started_s if job.started_s is not None else 0.0
    fresh = facts.saved_s is not None and now_s - facts.saved_s <= rules.fresh_s
    done = [each for each in facts.past if each.state in (PreemptState.ASKED, PreemptState.DONE)]
    faults = (
        (job.phase is not Phase.RUNNING or job.gpus <= 0, "holds no GPUs"),
        (job.het_id is not None, "part of a heterogeneous job"),
        (not job.may_requeue, "may not be requeued"),
        (facts.keep, "its owner's veto"),
        (facts.rung < Rung.WARN, "only observed: no checkpoint of it is kept"),
        (facts.stopping, "to be stopped"),
        (any(each.life == job.life for each in facts.past), "asked for once in this life"),
        (len(done) >= rules.per_job, f"has yielded {len(done)} times"),
        (ran_s < rules.min_run_s, f"has run for {ran_s:.0f} s only"),
        (not fresh, "no fresh verified checkpoint"),
    )
    return next((why for holds, why in faults if holds), "")


def heir_of(ranked: Sequence[Job], pending: Iterable[Job], past: Iterable[Preemption]) -> Job | None:
    """Return the first waiting job of a partition's ranking, if it is also the one that Slurm starts next.

    For one job room is made once: what Slurm then gave its GPUs to is not asked again.
    """
    first = next(iter(ranked), None)
    if first is None or first.reason != RESOURCES or first.held:
        return None
    rivals = [job for job in pending if job.partition == first.partition and job.job_id != first.job_id]
    ahead = any(job.priority > first.priority for job in rivals)
    served = any(each.heir == first.job_id for each in past)
    return None if ahead or served else first


def make_room(
    heir: Job, view: JobView, running: Sequence[Occupant], rules: PreemptRules, now_s: float, most: int
) -> Room | None:
    """Return who should yield to the heir: `most` jobs at most, and only if all are the better for it, in sum.

    One job with as many GPUs as the heir asks for, or several on one node; those that the policy ranks behind the heir.
    """
    first = rules.policy.key(view, now_s)
    ranked = sorted(running, key=lambda each: (rules.policy.key(each.view, now_s), each.key), reverse=True)
    behind = [
        each
        for each in ranked
        if not each.apart and each.job.partition == heir.partition and rules.policy.key(each.view, now_s) > first
    ]
    sets = [each for each in _sets(heir.gpus, behind) if len(each) <= most]
    gains = [(gain_s(view, each, rules, now_s), each) for each in sets]
    best = max(gains, key=lambda pair: pair[0], default=None)
    if best is None or not best[0] > 0:
        return None
    gain, victims = best
    short = needs_s(rules.policy, view)
    reason = (
        f"{rules.policy.spec}: job {heir.job_id} is taken to need {short:.0f} s, these to need "
        f"{max(needs_s(rules.policy, each.view) for each in victims):.0f} s; in sum they end {gain:.0f} s sooner"
    )
    return Room(heir, tuple(victims), gain, reason)


def gain_s(heir: JobView, victims: Sequence[Occupant], rules: PreemptRules, now_s: float) -> float:
    """Return by how many seconds the sum of completion times falls if these yield to the heir.

    Without it the heir waits until the last of them has ended. With it each of them waits for the heir, and for
    `cost_s` at least, and does anew what it did since its checkpoint.
    """
    waits_s = max(needs_s(rules.policy, each.view) for each in victims)
    short_s = max(rules.cost_s, needs_s(rules.policy, heir))
    return waits_s - sum(short_s + max(0.0, now_s - each.saved_s) for each in victims)


def needs_s(policy: Policy, view: JobView) -> float:
    """Return what a job is taken to need still: under LAS, which has no estimates, as much as it has had already."""
    return view.attained_s if isinstance(policy, Las) else policy.key(view, 0.0)[0]


def left_within(past: Iterable[Preemption], rules: PreemptRules, now_s: float) -> int:
    """Return how many jobs may still yield within this hour."""
    counted = [each for each in past if each.state is not PreemptState.REFUSED and now_s - each.at_s < WINDOW_S]
    return max(0, rules.per_hour - len(counted))


def settled(asked: Preemption, job: Job | None, now_s: float) -> Preemption:
    """Return what became of a request, by its job as it is now; the same if it is not known yet."""
    if job is None or job.uid != asked.key.uid or job.phase is Phase.ENDED:
        return asked.ended(PreemptState.VOID, "the job has left the queue")
    if job.restarts > asked.life.restarts:
        return asked.ended(PreemptState.DONE)
    if job.life != asked.life:
        return asked.ended(PreemptState.VOID, "another job has its id")
    tried = job.phase is Phase.RUNNING and asked.tries >= MOST_TRIES
    if tried or now_s - asked.at_s > PATIENCE_S:
        return asked.ended(PreemptState.VOID, f"it still ran after {asked.tries} requests")
    return asked


def _sets(need: int, behind: Sequence[Occupant]) -> list[tuple[Occupant, ...]]:
    """Return which jobs would do: each large one alone, and of each node's the last ones of the ranking together."""
    alone = [(each,) for each in behind if each.job.gpus >= need]
    nodes: dict[str, list[Occupant]] = defaultdict(list)
    for each in behind:
        if len(each.job.nodes) == 1:
            nodes[each.job.nodes[0]].append(each)
    return [*alone, *(found for own in nodes.values() if (found := _enough(need, own)))]


def _enough(need: int, own: Sequence[Occupant]) -> tuple[Occupant, ...]:
    found: list[Occupant] = []
    for each in own:
        if sum(one.job.gpus for one in found) >= need:
            break
        found.append(each)
    return tuple(found) if sum(one.job.gpus for one in found) >= need else ()
