"""The argument of commands that names one job: told apart, when it cannot be one, from a job that is unknown."""

import re

from evalstopd.errors import WrongUsage

_JOB = re.compile(r"[0-9]{1,12}(_[0-9]{1,9})?", re.ASCII)


def job_argument(text: str) -> str:
    """Return the id of one job or array task. Raises WrongUsage for any other text."""
    if not _JOB.fullmatch(text):
        raise WrongUsage(f"not the id of one job or array task: {text[:40]!a}")
    return text
