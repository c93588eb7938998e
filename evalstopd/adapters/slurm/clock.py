"""What time slurmctld has: the head of its configuration is dated by its own clock, in whole seconds."""

import re

from evalstopd.adapters.slurm.run import Runner, succeed
from evalstopd.errors import Unavailable

_DATED = re.compile(r"^Configuration data as of (\d{9,12})$", re.MULTILINE)


def controllers_clock_s(run: Runner) -> float:
    """Return slurmctld's time in seconds since the epoch. Raises Unavailable where it does not answer or say."""
    found = _DATED.search(succeed(run(("scontrol", "show", "config"), {}), "scontrol show config"))
    if found is None:
        raise Unavailable("scontrol show config is not dated")
    return float(found[1])
