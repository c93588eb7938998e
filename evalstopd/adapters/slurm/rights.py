"""What a user may do in Slurm: whether accounting gives them the level at which all jobs are theirs to act on."""

from evalstopd.adapters.slurm.run import Runner
from evalstopd.errors import Unavailable

_LEVELS = frozenset({"Operator", "Administrator"})


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
