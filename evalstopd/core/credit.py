"""What an undone stop owes its owner: the GPU-hours of the work that has to be done again."""

from dataclasses import dataclass

from evalstopd.core.intent import Intent
from evalstopd.core.model import JobKey

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Credit:
    """GPU-hours booked to a job's account and user, once for each intent; `at_s` in seconds since the epoch.

    `gpu_hours` is the job's GPUs times the hours from when the kept checkpoint's eval arrived, or the stopped life
    started if that was later, to the life's end: the work lost by going back to that checkpoint, whenever the stop
    is undone. It is an upper bound where the job has a later checkpoint of its own.
    """

    intent_id: str
    key: JobKey
    user: str
    account: str
    gpu_hours: float
    at_s: float
    how: str


def credit_of(intent: Intent, at_s: float, how: str) -> Credit:
    """Return the credit for undoing a stop at a moment; 0 GPU-hours where no checkpoint was kept."""
    return Credit(intent.id, intent.key, intent.user, intent.account, _lost_gpu_hours(intent), at_s, how)


def _lost_gpu_hours(intent: Intent) -> float:
    """Where nobody tells when the life ended, the moment counts at which the daemon noted that it had."""
    told_s = intent.ending.ended_s if intent.ending is not None else None
    ended_s = intent.changed_s if told_s is None else told_s
    since_s = ended_s if intent.kept_s is None else intent.kept_s
    return intent.gpus * max(0.0, ended_s - since_s) / _HOUR_S
