"""Who waits in which line, in which order the policy wants them, and who is left alone and why."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from evalstopd.core.model import Job, JobKey, JobView, Phase
from evalstopd.core.policies import Policy, rank
from evalstopd.core.priorities import LOWEST, Change, Placed, arrange
from evalstopd.core.rules import Rules
from evalstopd.core.shift import Lever, Shift, ShiftState, natural


@dataclass(frozen=True, slots=True)
class PriorityRules:
    """How waiting jobs are put in order. `interval_s` is the least time between two orderings, in seconds.

    `partitions` empty: all that are governed. At most `most` jobs are changed at a time. What an owner resets is asked
    for again `reassert` times. With `gain` no job gets further than so many places before where it would be by its
    submit time. `loss_metric` names the training loss, where the policy ranks by it.
    """

    policy: Policy
    partitions: tuple[str, ...] = ()
    lever: Lever = Lever.NICE
    most: int = 50
    interval_s: float = 60.0
    reassert: int = 3
    gain: int | None = None
    loss_metric: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits, or the waiting tasks of an array, which have one Nice. `apart` says why it is left alone."""

    jobs: tuple[Job, ...]
    shift: Shift | None
    apart: str

    @property
    def job(self) -> Job:
        """Return one of its jobs, for what they have in common."""
        return self.jobs[0]

    @property
    def name(self) -> str:
        """Return the job's id, or the array's."""
        return unit_of(self.job)

    @property
    def natural(self) -> int:
        """Return what its priority would be without us."""
        return natural(self.shift, self.job.priority, self.job.nice)

    @property
    def key(self) -> JobKey:
        """Return what it is known by for good."""
        if self.shift is not None:
            return self.shift.key
        return JobKey(self.job.cluster, self.name, self.job.uid, min(job.submitted_s for job in self.jobs))

    @property
    def placed(self) -> Placed:
        """Return how it stands."""
        return Placed(self.name, int(self.name), self.job.priority, self.natural)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of waiting jobs beside the queue, each by name; times in seconds.

    `estimates` are their lengths, `attained` how long they ran in earlier lives, `loss_drops` the last reduction of the
    training loss per second.
    """

    estimates: Mapping[str, float]
    attained: Mapping[str, float]
    loss_drops: Mapping[str, float]


OWN_NICE = "has a Nice of its own"
AT_THE_FLOOR = "has the lowest priority there is, which tells nothing of what it would have without us"

Estimate = Callable[[Sequence[Waiting]], Mapping[str, float]]


def limits(waiting: Sequence[Waiting]) -> Mapping[str, float]:
    """Return each job's time limit in seconds; those without one are left out. The plainest estimate of a length."""
    asked = {each.name: each.job.time_limit_s for each in waiting}
    return {name: float(limit) for name, limit in asked.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class Line:
    """Jobs that stand in one line, the one that the policy wants to start first in front, and what gets them there."""

    partition: str
    qos: str
    wanted: tuple[Waiting, ...]
    changes: tuple[Change, ...]


def unit_of(job: Job) -> str:
    """Return the id under which a job's Nice is set: its own, or its array's."""
    return job.job_id.partition("_")[0]


def waiting_of(
    jobs: Iterable[Job], shifts: Iterable[Shift], rules: Rules, asked: PriorityRules, now_s: float
) -> list[Waiting]:
    """Return the governed jobs that wait."""
    units: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.phase is Phase.PENDING and _is_meant(job, rules, asked):
            units[unit_of(job)].append(job)
    known = {shift.key.job_id: shift for shift in shifts}
    return [_waiting(tuple(own), known.get(name), now_s) for name, own in units.items()]


def by_lever(waiting: Iterable[Waiting], lever: Lever) -> list[Waiting]:
    """Return the same jobs; those that another lever moved are left alone until that is taken back."""
    return [replace(each, apart=each.apart or _other_lever(each.shift, lever)) for each in waiting]


def is_of(shift: Shift, job: Job) -> bool:
    """Tell whether a job is the one that was moved, and no other under the same id."""
    key = shift.key
    same = (job.cluster, unit_of(job), job.uid) == (key.cluster, key.job_id, key.uid)
    return same and (job.restarts > 0 or job.submitted_s == key.submitted_s)


def line_up(
    waiting: Sequence[Waiting], jobs: Iterable[Job], known: Known, asked: PriorityRules, now_s: float
) -> tuple[Line, ...]:
    """Return each line as the policy wants it: the jobs of one partition and one QOS, for the site ranks these itself.

    `jobs` is the whole queue. Changes are `asked.most` at most, of all lines together.
    """
    lines: dict[tuple[str, str], list[Waiting]] = defaultdict(list)
    for each in waiting:
        if not each.apart:
            lines[(each.job.partition, each.job.qos)].append(each)
    pending = [job for job in jobs if job.phase is Phase.PENDING and job.priority > 0]
    left, made = asked.most, []
    for (partition, qos), own in sorted(lines.items()):
        wanted = wanted_order(own, known, asked, now_s)
        names = {each.name for each in own}
        others = [job.priority for job in pending if unit_of(job) not in names]
        changes = arrange([each.placed for each in wanted], others, left) if left else ()
        left -= len(changes)
        made.append(Line(partition, qos, wanted, changes))
    return tuple(made)


def wanted_order(waiting: Sequence[Waiting], known: Known, asked: PriorityRules, now_s: float) -> tuple[Waiting, ...]:
    """Return the jobs in the policy's order: the ranking is the one that the simulator has."""
    views = {view_id(each): each for each in waiting}
    ranked = rank(asked.policy, (view_of(each, known) for each in waiting), now_s)
    order = [views[view.job_id] for view in ranked]
    return tuple(order if asked.gain is None else bounded(order, asked.gain))


def wanted_key(waiting: Waiting, known: Known, asked: PriorityRules, now_s: float) -> tuple[float, ...]:
    """Return what the policy ranks a job by, the lowest first."""
    return asked.policy.key(view_of(waiting, known), now_s)


def view_id(waiting: Waiting) -> str:
    """Return an id that sorts as the number does, since equal keys are parted by it."""
    return waiting.name.zfill(12)


def view_of(waiting: Waiting, known: Known) -> JobView:
    """Return all that a policy may see of a waiting job."""
    return JobView(
        job_id=view_id(waiting),
        submitted_s=waiting.key.submitted_s,
        gpus=waiting.job.gpus,
        estimate_s=known.estimates.get(waiting.name),
        attained_s=known.attained.get(waiting.name, 0.0),
        loss_drop_per_s=known.loss_drops.get(waiting.name),
    )


def bounded(order: Sequence[Waiting], gain: int) -> list[Waiting]:
    """Return the order, nobody more than `gain` places before where he is by submit time."""
    by_time = sorted(range(len(order)), key=lambda at: (order[at].key.submitted_s, int(order[at].name)))
    free = by_time[:gain]
    heapify(free)
    found = []
    for place in range(len(order)):
        if place + gain < len(by_time):
            heappush(free, by_time[place + gain])
        found.append(order[heappop(free)])
    return found


def _is_meant(job: Job, rules: Rules, asked: PriorityRules) -> bool:
    names = job.partition.split(",")
    governed = job.gpus > 0 and job.account not in rules.exempt_accounts
    wanted = asked.partitions or rules.partitions
    return governed and (not wanted or any(name in wanted for name in names))


def _waiting(jobs: tuple[Job, ...], shift: Shift | None, now_s: float) -> Waiting:
    if shift is not None and not is_of(shift, jobs[0]):
        shift = None
    return Waiting(jobs, shift, _apart(jobs, shift, now_s) or _no_slot(jobs[0], shift))


def _no_slot(job: Job, shift: Shift | None) -> str:
    """Return why what a job has tells nothing of what it would have, so that it can be neither lent nor taken."""
    if shift is None or not shift.away:
        return OWN_NICE if job.nice else ""
    if shift.nice:
        return OWN_NICE
    return AT_THE_FLOOR if shift.lever is Lever.NICE and job.nice > 0 and job.priority <= LOWEST else ""


def _other_lever(shift: Shift | None, lever: Lever) -> str:
    moved = shift is not None and shift.away and shift.lever is not lever
    return f"its {shift.lever.value.capitalize()} is given back first" if moved and shift is not None else ""


def _apart(jobs: Sequence[Job], shift: Shift | None, now_s: float) -> str:
    """Return why a job is left alone; empty for one that is not."""
    job = jobs[0]
    eligible = all(each.eligible_s is not None and each.eligible_s <= now_s for each in jobs)
    faults = (
        (shift is not None and shift.state is ShiftState.LEFT, shift.why if shift is not None else ""),
        (any(each.het_id is not None for each in jobs), "part of a heterogeneous job"),
        ("," in job.partition, "asked for several partitions"),
        (any(each.held for each in jobs), "held"),
        (not eligible, f"may not start yet ({job.reason or 'no reason given'})"),
        (len({each.nice for each in jobs}) > 1, "its tasks have different Nice"),
    )
    return next((why for holds, why in faults if holds), "")
