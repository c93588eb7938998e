"""How many GPUs a job has or asked for, from the TRES texts of squeue."""

from dataclasses import dataclass

from evalstopd.slurmtext.tres import count_gpus


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
