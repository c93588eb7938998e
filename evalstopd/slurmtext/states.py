"""Every word Slurm has for a job's state, and the phase it means; an unfamiliar word means UNKNOWN."""

from collections.abc import Mapping
from types import MappingProxyType

from evalstopd.core.model import Phase

# A life that was requeued is over in accounting; in the queue the same word means that the job waits again.
REQUEUED = "REQUEUED"
# Accounting keeps a record of its own for the time before a change of size.
RESIZING = "RESIZING"

_WORDS: Mapping[Phase, tuple[str, ...]] = {
    Phase.PENDING: ("PENDING", REQUEUED, "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"),
    # These hold their allocation: CONFIGURING waits for its nodes to boot, RESIZING changes its size.
    Phase.RUNNING: ("RUNNING", "CONFIGURING", RESIZING, "SIGNALING"),
    Phase.SUSPENDED: ("SUSPENDED", "STOPPED"),
    Phase.ENDING: ("COMPLETING", "STAGE_OUT"),
    Phase.ENDED: (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    ),
}
_PHASES: Mapping[str, Phase] = MappingProxyType({word: phase for phase, words in _WORDS.items() for word in words})


def phase_of(state: str) -> Phase:
    """Return the phase that a state of squeue or sacct means; `CANCELLED by 1003` is CANCELLED."""
    return _PHASES.get(first_word(state), Phase.UNKNOWN)


def first_word(state: str) -> str:
    """Return a state without what sacct adds to it (` by 1003`)."""
    return state.partition(" ")[0]
