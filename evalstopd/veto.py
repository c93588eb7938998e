"""The owner's veto: one token in the comment of a job, or of each of its parts, written where what is there is kept."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evalstopd.core.model import Job, Phase
from evalstopd.core.wishes import KEEP, RUNG, is_parted_anew, merge_token, parse_comment
from evalstopd.errors import NotAllowed, Rejected, Unavailable
from evalstopd.ports import Cluster
from evalstopd.report.text import plain

_BY_HAND = "its owner may write another comment, scontrol update JobId={job} Comment=evalstop=keep"
_MOST_WRITES = 3
_Pause = Callable[[], object]
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def keep(cluster: Cluster, job_id: str, pause: _Pause) -> str:
    """Put `evalstop=keep` into a job's comment, see that it stays there, and return the line that says so.

    The id of an array means all its tasks that are in the queue; any id of a heterogeneous job (7, 7+1, or that of a
    component) means all its components, as it is left or ended whole. `pause` waits for the moment within which another
    that read the comment before our write may write it without our word. Raises Rejected for an unknown job or without
    the right to, Unavailable if the token did not stay.
    """
    job_id, _, component = job_id.partition("+")
    job = cluster.look([job_id]).get(job_id)
    if job is not None and job.het_id is not None and _components(cluster, job.het_id):
        return _keep_heterogeneous(cluster, job.het_id, pause)
    tasks = _tasks(cluster, job_id) if job is None else ()
    if tasks and not component:
        return _keep_array(cluster, job_id, pause)
    if job is None:
        raise Rejected(f"job {job_id} is unknown to Slurm")
    if component:
        raise Rejected(f"no heterogeneous job in the queue has the id {job_id}: name it without +{component}")
    if job.phase is Phase.ENDED:
        raise Rejected(f"job {job_id} has ended")
    return _keep_one(cluster, job_id, pause)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The rows of what is to be kept as they were found, and as they were a moment after the last write."""

    before: Sequence[Job]
    after: Sequence[Job]


def _stay(look: Callable[[], Sequence[Job]], write: Callable[[Sequence[Job]], bool], pause: _Pause) -> _Kept:
    """Write the veto where it is missing until it stands a moment later, too; `write` tells whether it wrote any.

    Slurm has no compare-and-set: a script that names its run in the comment may write our word away.
    """
    before = seen = look()
    for _ in range(_MOST_WRITES):
        if _without(seen) and not write(seen):
            break
        pause()
        seen = look()
        if not _without(seen):
            break
    return _Kept(before, seen)


def _keep_one(cluster: Cluster, job_id: str, pause: _Pause) -> str:
    kept = _stay(lambda: [*cluster.look([job_id]).values()], lambda rows: _write_each(cluster, rows), pause)
    if not kept.after or _without(kept.after):
        raise Unavailable(f"the comment of job {job_id} does not say evalstop=keep: try again")
    if not _without(kept.before):
        return f"job {job_id} already says evalstop=keep: it will not be stopped"
    return f"job {job_id} now says evalstop=keep: it will not be stopped{_parted_anew(kept.before)}"


def _write_each(cluster: Cluster, rows: Sequence[Job]) -> bool:
    """Write it into each that lacks it, whose own words must stay; tell whether there was one."""
    left = _without(rows)
    for job in left:
        _write(cluster, job.address, job.comment)
    return bool(left)


def _write(cluster: Cluster, job_id: str, comment: str) -> None:
    try:
        cluster.set_comment(job_id, merge_token(comment, RUNG, KEEP))
    except NotAllowed:
        whole = job_id.partition("+")[0]
        raise NotAllowed(f"job {whole} is another user's: only its owner or an operator may keep it") from None
    except Rejected as error:
        raise Rejected(f"{error}; nothing was set: {_BY_HAND.format(job=job_id)}") from None


def _parted_anew(jobs: Iterable[Job]) -> str:
    """Return what else than the veto the writing of these comments changed; empty where that is nothing."""
    changed = [job for job in jobs if not parse_comment(job.comment).keep and is_parted_anew(job.comment)]
    return "; line breaks, commas and the like between the words of the comment became single spaces" if changed else ""


def _components(cluster: Cluster, het_id: int) -> Sequence[Job]:
    """Return the rows of a heterogeneous job in the queue, one for each component."""
    return [job for job in cluster.queue().jobs if job.het_id == het_id]


def _keep_heterogeneous(cluster: Cluster, het_id: int, pause: _Pause) -> str:
    kept = _stay(lambda: _components(cluster, het_id), lambda parts: _write_each(cluster, parts), pause)
    left = _without(kept.after)
    if left:
        ids = ", ".join(job.job_id for job in left[:8])
        raise Unavailable(f"these components of job {het_id} do not say evalstop=keep: {ids}; try again")
    said = f"heterogeneous job {het_id}: its {len(kept.after)} components say evalstop=keep: it will not be stopped"
    return said + _parted_anew(kept.before)


def _tasks(cluster: Cluster, array: str) -> Sequence[Job]:
    """Return the rows of an array in the queue: a task each, and one for those that still wait together."""
    return [job for job in cluster.queue().jobs if job.job_id.startswith(f"{array}_")]


def _keep_array(cluster: Cluster, array: str, pause: _Pause) -> str:
    kept = _stay(lambda: _tasks(cluster, array), lambda tasks: _write_tasks(cluster, array, tasks), pause)
    left = _without(kept.after)
    if left:
        ids = ", ".join(plain(job.job_id, 40) for job in left[:8])
        raise Unavailable(
            f"{_number(kept.after) - _number(left)} tasks of array {array} now say evalstop=keep, these do not: {ids}; "
            "name each by its own id (like 21_1)"
        )
    said = f"array {array}: its {_number(kept.after)} tasks in the queue say evalstop=keep: they will not be stopped"
    return said + _parted_anew(kept.before)


def _write_tasks(cluster: Cluster, array: str, tasks: Sequence[Job]) -> bool:
    """Write it into all tasks: at once where they have one comment, else into each, whose own words must stay."""
    if len({job.comment for job in tasks}) == 1:
        _write(cluster, array, tasks[0].comment)
        return True
    return _write_each(cluster, [job for job in tasks if not _together(job)])


def _without(tasks: Sequence[Job]) -> list[Job]:
    return [job for job in tasks if not parse_comment(job.comment).keep]


def _together(job: Job) -> bool:
    return job.job_id.endswith("]")


def _number(tasks: Sequence[Job]) -> int:
    return sum(_waiting(job.job_id) if _together(job) else 1 for job in tasks)


def _waiting(job_id: str) -> int:
    """Return how many tasks wait together by an id like `21_[0-4,8%2]`; of one that Slurm cut, those it shows."""
    ranges = _RANGE.findall(job_id.partition("[")[2].partition("%")[0])
    return sum(len(range(int(first), int(last or first) + 1, int(step or 1) or 1)) for first, last, step in ranges)
