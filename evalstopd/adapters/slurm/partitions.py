"""Which partitions Slurm has, hidden ones too: a name in the settings that it lacks governs nothing."""

from evalstopd.adapters.slurm.run import Runner
from evalstopd.errors import Unavailable


def partitions(run: Runner) -> frozenset[str]:
    """Return the names of all partitions. Raises Unavailable."""
    answer = run(("sinfo", "--all", "--noheader", "--format=%R"), {})
    if answer.code != 0:
        raise Unavailable(f"sinfo failed ({answer.code}): {answer.complaint}")
    return frozenset(line.strip() for line in answer.out.splitlines() if line.strip())
