"""How many GPUs a job has or asked for, from the TRES texts of squeue."""

import re
from dataclasses import dataclass

_COUNT = re.compile(r"([0-9]+)([KMG]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Tres:
    """The TRES texts of one job: what it was allotted, and what it asked for per job, node and task."""

    allotted: str
    per_job: str
    per_node: str
    per_task: str
    nodes: int
    tasks: int


def gpus_of(tres: Tres) -> int:
    """Return the number of GPUs: allotted, else asked for (sites may not count GPUs among their TRES)."""
    asked = (
        count_gpus(tres.per_job),
        count_gpus(tres.per_node) * tres.nodes,
        count_gpus(tres.per_task) * tres.tasks,
    )
    return count_gpus(tres.allotted) or max(asked)


def count_gpus(text: str) -> int:
    """Return the GPUs that a TRES text names: `cpu=2,gres/gpu=1`, `gres:gpu:a100:2`, `gres/gpu:1`, `N/A`.

    Where a total stands beside counts by type (`gres/gpu=3,gres/gpu:a100=3`) the total counts alone.
    """
    total, typed = 0, 0
    for entry in text.split(","):
        words = re.split("[:=]", re.sub("^gres[:/]", "", entry.partition("(")[0]))
        if words[0] != "gpu":
            continue
        if len(words) <= 2:
            total += _count(words[-1])
        else:
            typed += _count(words[-1])
    return max(total, typed)


def _count(word: str) -> int:
    found = _COUNT.fullmatch(word)
    return int(found[1]) * _UNITS[found[2]] if found else 1
