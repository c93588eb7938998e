"""Which watched job an observed job is: ids are reused, requeues renew the submit time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalstopd.core.model import Job, JobKey
from evalstopd.core.watch import Watch


@dataclass(frozen=True, slots=True)
class Sighting:
    """An observed job with the key it has for good; `watch` is what we kept of it, if anything."""

    key: JobKey
    job: Job
    watch: Watch | None


def recognise(jobs: Iterable[Job], watches: Iterable[Watch]) -> tuple[Sighting, ...]:
    """Pair each observed job with its watch.

    Same id, owner and submit time: the same life. More restarts than we knew: the same job in a new life.
    Anything else under a known id is another job that got the id: it gets a key of its own.
    """
    held = {(watch.key.cluster, watch.key.job_id): watch for watch in watches}
    return tuple(_sight(job, held) for job in jobs)


def _sight(job: Job, held: Mapping[tuple[str, str], Watch]) -> Sighting:
    watch = held.get((job.cluster, job.job_id))
    if (
        watch is not None
        and watch.key.uid == job.uid
        and (watch.life == job.life or job.restarts > watch.life.restarts)
    ):
        return Sighting(watch.key, job, watch)
    return Sighting(JobKey(job.cluster, job.job_id, job.uid, job.submitted_s), job, None)
