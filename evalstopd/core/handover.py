"""Who got the GPUs that a stop freed."""

from collections.abc import Iterable

from evalstopd.core.intent import Intent
from evalstopd.core.model import Job


def handed_to(intent: Intent, jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Return the jobs that started on the ended job's nodes since it ended, until its GPUs are used up.

    Exact where the job had its nodes alone; on a shared node, GPUs freed by others count too.
    """
    if intent.ending is None or intent.ending.ended_s is None:
        return ()
    since, nodes = intent.ending.ended_s, set(intent.nodes)
    later = [
        job
        for job in jobs
        if job.holds_gpus and job.started_s is not None and job.started_s >= since and nodes & set(job.nodes)
    ]
    taken: list[Job] = []
    for job in sorted(later, key=lambda each: (each.started_s or 0, each.job_id)):
        if sum(each.gpus for each in taken) < intent.gpus:
            taken.append(job)
    return tuple(taken)
