"""The owner's veto: one token in the job's comment, written where what is there is kept."""

from evalstopd.core.wishes import KEEP, merge_token, parse_comment
from evalstopd.errors import Rejected, Unavailable
from evalstopd.ports import Cluster


def keep(cluster: Cluster, job_id: str) -> str:
    """Put `evalstop=keep` into a job's comment and read it back; return the line that says so.

    Raises Rejected for an unknown job or without the right to, Unavailable if the token did not take.
    """
    job = cluster.look([job_id]).get(job_id)
    if job is None:
        raise Rejected(f"job {job_id} is unknown to Slurm (a task of an array is named like 21_1)")
    if parse_comment(job.comment).keep:
        return f"job {job_id} already says evalstop=keep: it will not be stopped"
    try:
        cluster.set_comment(job_id, merge_token(job.comment, "evalstop", KEEP))
    except Rejected as error:
        raise Rejected(f"{error}; any comment that says evalstop=keep will do") from None
    after = cluster.look([job_id]).get(job_id)
    if after is None or not parse_comment(after.comment).keep:
        raise Unavailable(f"the comment of job {job_id} does not say evalstop=keep: try again")
    return f"job {job_id} now says evalstop=keep: it will not be stopped"
