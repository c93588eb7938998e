"""Which accounts accounting has: a name in the settings that it lacks exempts nobody."""

from evalstopd.adapters.slurm.run import Runner, succeed
from evalstopd.errors import Unavailable


def accounts(run: Runner) -> frozenset[str]:
    """Return the names of all accounts. Raises Unavailable, as where there is no accounting, or some are not shown.

    Every cluster's accounting has `root`; PrivateData hides from a user accounts that are not theirs, that one too.
    """
    out = succeed(run(("sacctmgr", "--noheader", "--parsable2", "list", "account", "format=Account"), {}), "sacctmgr")
    found = frozenset(line.strip() for line in out.splitlines() if line.strip())
    if "root" not in found:
        raise Unavailable("sacctmgr does not show this account all accounts")
    return found
