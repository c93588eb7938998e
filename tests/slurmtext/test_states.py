"""Every state word of Slurm 22.05 to 26.05 has the phase that the rules may rely on."""

import pytest

from evalstopd.core.model import Phase
from evalstopd.slurmtext.states import first_word, phase_of

WORDS = {
    "PENDING": Phase.PENDING,
    "REQUEUED": Phase.PENDING,
    "REQUEUE_FED": Phase.PENDING,
    "REQUEUE_HOLD": Phase.PENDING,
    "RESV_DEL_HOLD": Phase.PENDING,
    "SPECIAL_EXIT": Phase.PENDING,
    "RUNNING": Phase.RUNNING,
    "CONFIGURING": Phase.RUNNING,
    "RESIZING": Phase.RUNNING,
    "SIGNALING": Phase.RUNNING,
    "SUSPENDED": Phase.SUSPENDED,
    "STOPPED": Phase.SUSPENDED,
    "COMPLETING": Phase.ENDING,
    "STAGE_OUT": Phase.ENDING,
    "BOOT_FAIL": Phase.ENDED,
    "CANCELLED": Phase.ENDED,
    "CANCELLED by 1003": Phase.ENDED,
    "COMPLETED": Phase.ENDED,
    "DEADLINE": Phase.ENDED,
    "FAILED": Phase.ENDED,
    "NODE_FAIL": Phase.ENDED,
    "OUT_OF_MEMORY": Phase.ENDED,
    "PREEMPTED": Phase.ENDED,
    "REVOKED": Phase.ENDED,
    "TIMEOUT": Phase.ENDED,
    "EXPEDITING": Phase.UNKNOWN,
    "running": Phase.UNKNOWN,
    "R": Phase.UNKNOWN,
    "": Phase.UNKNOWN,
}


@pytest.mark.parametrize(("state", "phase"), WORDS.items())
def test_a_state_means_its_phase(state: str, phase: Phase) -> None:
    assert phase_of(state) is phase


def test_the_first_word_leaves_out_who_cancelled() -> None:
    assert first_word("CANCELLED by 1003") == "CANCELLED"
