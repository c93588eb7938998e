"""What a user may do in Slurm: whether accounting gives them the level at which all jobs are theirs to act on."""

import re

from evalstopd.adapters.slurm.run import Runner
from evalstopd.errors import Unavailable

_LEVELS = frozenset({"Operator", "Administrator"})
_SLURM_USER = re.compile(r"^SlurmUser\s*=\s*\S+\((\d{1,10})\)\s*$", re.MULTILINE)


def is_operator(run: Runner, uid: int, user: str) -> bool:
    """Tell whether a user is root, an Operator or an Administrator; no where accounting does not tell."""
    if uid == 0:
        return True
    if not user or not user.replace("-", "").replace("_", "").replace(".", "").isalnum():
        return False
    try:
        answer = run(("sacctmgr", "--noheader", "--parsable2", "list", "user", f"name={user}", "format=AdminLevel"), {})
    except Unavailable:
        return False
    return answer.code == 0 and answer.out.strip() in _LEVELS


def is_slurms_own(run: Runner, uid: int) -> bool:
    """Tell whether a user is the one that slurmctld runs as, who may do all, whatever accounting says."""
    try:
        answer = run(("scontrol", "show", "config"), {})
    except Unavailable:
        return False
    found = _SLURM_USER.search(answer.out) if answer.code == 0 else None
    return found is not None and int(found[1]) == uid
