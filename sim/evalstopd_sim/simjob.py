"""A job in the emulated cluster: where it stands between two events."""

from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Any, NamedTuple

from evalstopd.core.model import JobView
from evalstopd.core.policies import STEADY, Trend
from evalstopd_sim.truth import TrueJob

# (key, submit time, id, job): tuples of two jobs never compare beyond the id.
Entry = tuple[tuple[float, ...], float, str, Any]
NO_ENTRY: Entry = ((), 0.0, "", None)


class Trigger(NamedTuple):
    """Where a rule fires: after this much work, at which eval (None: before the first), after how many declines."""

    work_s: float
    eval_place: int | None
    declines: int = 0


class End(Enum):
    """How a job ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class SimJob:
    """Times in seconds. `done_s` is the work done up to `begun_s`, from where a running job works on.

    `life` counts its starts and stops, so that events asked for in an earlier one are known to be stale.
    `goal_s` is the work at which it ends, in the way `end` says.
    """

    truth: TrueJob
    index: int
    gpus: int
    view: JobView
    entry: Entry = NO_ENTRY
    trend: Trend = STEADY
    running: bool = False
    started: bool = False
    life: int = 0
    done_s: float = 0.0
    begun_s: float = 0.0
    held_from_s: float = 0.0
    overhead_s: float = 0.0
    preemptions: int = 0
    goal_s: float = inf
    end: End = End.FINISHED
    trigger: Trigger | None = None
    last_from_s: float = inf
    is_last: bool = False
    seen: int = 0
    nodes: tuple[tuple[int, int], ...] = field(default=())

    def work_s(self, now_s: float) -> float:
        """Return the work done by now."""
        if self.running and now_s > self.begun_s:
            return self.done_s + now_s - self.begun_s
        return self.done_s
