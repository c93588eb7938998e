"""The argument of commands that names one job: told apart, when it cannot be one, from a job that is unknown."""

import re

from evalstopd.errors import WrongUsage

_JOB = re.compile(r"[0-9]{1,12}(_[0-9]{1,9})?", re.ASCII)
_COMPONENT = re.compile(r"([0-9]{1,12})\+[0-9]{1,3}", re.ASCII)


def job_argument(text: str) -> str:
    """Return the id of one job or array task. Raises WrongUsage for any other text."""
    component = _COMPONENT.fullmatch(text)
    if component:
        raise WrongUsage(f"{text} is part of a heterogeneous job: name the whole job, {component[1]}")
    if not _JOB.fullmatch(text):
        raise WrongUsage(f"not the id of one job or array task: {text[:40]!a}")
    return text


def job_or_component(text: str) -> str:
    """Return the same, or a component of a heterogeneous job as Slurm lists it (`7+1`), where that means all of it."""
    return text if _COMPONENT.fullmatch(text) else job_argument(text)
