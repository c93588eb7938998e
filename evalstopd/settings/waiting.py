"""The sections that say how waiting jobs are ordered, and who yields to them."""

from pydantic import Field

from evalstopd.core.shift import Lever
from evalstopd.settings.part import AnyCase, Part


class PrioritySettings(Part):
    """In which order waiting jobs are to start: `policy` is a base policy, empty: as Slurm has it.

    `mechanism` is Nice, or Priority, which multifactor then leaves alone. `max_changes` are made at a time,
    `min_interval_s` seconds apart; what an owner resets is set again `reassert` times. `loss_aware` allows the policy
    of that name, which ranks by `loss_metric`, written by users: it takes no job more than `loss_gain` places forward.
    """

    policy: AnyCase = ""
    partitions: tuple[str, ...] = ()
    mechanism: Lever = Lever.NICE
    max_changes: int = Field(default=50, ge=2, le=500)
    min_interval_s: float = Field(default=60.0, ge=0, le=86400)
    reassert: int = Field(default=3, ge=0, le=100)
    loss_aware: bool = False
    loss_metric: str = "loss"
    loss_gain: int = Field(default=10, ge=1, le=10_000)


class EstimateSettings(Part):
    """How far back accounting is read for estimates of jobs' lengths; `always`: although no policy needs them."""

    days: float = Field(default=30.0, gt=0, le=3650)
    always: bool = False


class PreemptSettings(Part):
    """When a running job is requeued for a waiting one: `policy` srtf-est or las, empty: never. Times in seconds.

    It must have run for `min_run_s`, with a verified checkpoint no older than `fresh_s`; within an hour `per_hour` jobs
    yield at most, one job `per_job` times. `cost_s` is how long Slurm keeps a requeued job from starting.
    """

    policy: AnyCase = ""
    cost_s: float = Field(default=120.0, ge=0, le=86400)
    min_run_s: float = Field(default=1800.0, ge=0)
    fresh_s: float = Field(default=900.0, gt=0)
    per_hour: int = Field(default=4, ge=1, le=1000)
    per_job: int = Field(default=2, ge=1, le=100)
