"""Job ids as they may reach a command line: a job's own number, or an array task as `A_T`."""

import re
from collections.abc import Iterable

from evalstopd.adapters.slurm.run import printable
from evalstopd.errors import Rejected

_EXACT = re.compile(r"[0-9]{1,12}(_[0-9]{1,9})?")
_FIRST_ALONE = "+0"


def exact(job_ids: Iterable[str]) -> list[str]:
    """Return the ids, each once, in order; raises Rejected for anything but one job or one task."""
    unique = list(dict.fromkeys(job_ids))
    for job_id in unique:
        if not _EXACT.fullmatch(job_id):
            raise Rejected(f"not the id of one job or array task: {printable(job_id, 40)}")
    return unique


def address(text: str) -> str:
    """Return an exact id, or that of a heterogeneous job's first component alone; raises Rejected as `exact` does."""
    exact([text.removesuffix(_FIRST_ALONE)])
    return text
