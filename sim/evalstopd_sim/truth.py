"""What nobody but the emulated world knows: true lengths, labels, peaks. No rule or policy is handed this."""

from math import inf
from typing import NamedTuple

RLHF = "rlhf"


class TrueJob(NamedTuple):
    """A job as it will really go. Times in seconds, counted in work done: overhead and waiting left out.

    `duration_s` is on the GPUs asked for. `marks` are the work times of its evals, `scores` what they will
    show, `levels` the noise-free scores. A hacking run is past its peak after `peak_s`. The owner cancels it
    by hand at `cancel_s`. The training loss is e^(-loss_rate x share of the work).
    """

    job_id: str
    kind: str
    submit_s: float
    gpus: int
    duration_s: float
    estimate_s: float | None
    marks: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()
    stderr: float | None = None
    loss_rate: float = 4.0
    hacking: bool = False
    peak_s: float = inf
    cancel_s: float = inf
    scaling: float = 0.06
