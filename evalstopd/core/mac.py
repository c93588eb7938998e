"""The seal by which a job says "this run is mine": only a holder of the job's secret can make it, for one run alone.

    job secret = HMAC-SHA256(site key, cluster | raw job id | uid | restarts | moment of issue)
    seal       = HMAC-SHA256(job secret, run id)

The root Prolog issues the secret (`keeper/job_secret.py` derives it in the same way); what stands in the run is
`moment.seal`. Prolog is not told when the job was submitted or started, so that its own clock tells lives under a
reused id apart: a secret that was issued before the life began is another life's.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field

from evalstopd.core.model import Job

MAC_TAG = "evalstop.mac"
# Munge itself refuses nodes whose clocks are further apart.
SKEW_S = 300
SHORTEST_KEY = 32
_SEAL = re.compile(r"([0-9]{1,12})\.([0-9a-f]{64})", re.ASCII)
_PURPOSE = "evalstop-job-1"


@dataclass(frozen=True, slots=True)
class SiteKey:
    """The site's secret, at least 32 bytes; shown nowhere."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) < SHORTEST_KEY:
            raise ValueError(f"the site key must have at least {SHORTEST_KEY} bytes")

    def sealed(self, job: Job, run_id: str, tag: str) -> bool:
        """Tell whether the tag is a seal that this very life of the job made for this very run."""
        found = _SEAL.fullmatch(tag)
        if found is None or job.started_s is None or int(found[1]) < job.started_s - SKEW_S:
            return False
        return hmac.compare_digest(seal(job_secret(self.key, job, found[1]), run_id).encode(), tag.encode())


def job_secret(key: bytes, job: Job, issued: str) -> str:
    """Return what the Prolog hands to a life of a job: `issued.secret`; `issued` in seconds since the epoch."""
    words = "|".join((_PURPOSE, job.cluster.lower(), str(job.raw_id), str(job.uid), str(job.restarts), issued))
    return f"{issued}.{hmac.new(key, words.encode(), hashlib.sha256).hexdigest()}"


def seal(secret: str, run_id: str) -> str:
    """Return the tag that a holder of a job's secret puts on a run. Raises ValueError for what is no secret."""
    issued, dot, own = secret.partition(".")
    if not _SEAL.fullmatch(f"{issued}{dot}{own}"):
        raise ValueError("this is no job secret")
    return f"{issued}.{hmac.new(own.encode(), run_id.encode(), hashlib.sha256).hexdigest()}"
