"""The choices about the emulated cluster that move results more than a policy does: all of them in one place."""

from dataclasses import dataclass
from enum import StrEnum
from math import inf

from evalstopd.errors import WrongUsage


class HeadOfLine(StrEnum):
    """What happens behind a job that does not fit: everything waits, or smaller ones go first (backfill)."""

    STRICT = "strict"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Times in seconds. The overhead is paid on each resume after a preemption, holding the GPUs.

    With `gpus_per_node` a job must sit on one node, or, if larger, on whole nodes; without it GPUs are
    slots. A preempted job cannot start again for `requeue_delay_s`. Nothing is handled after `until_s`:
    jobs not over by then are unfinished.
    """

    gpus: int = 64
    head_of_line: HeadOfLine = HeadOfLine.SKIP
    preemption_overhead_s: float = 120.0
    requeue_delay_s: float = 0.0
    gpus_per_node: int | None = None
    until_s: float = inf

    def __post_init__(self) -> None:
        if self.gpus < 1:
            raise WrongUsage(f"the cluster needs at least one GPU, not {self.gpus}")
        for name in ("preemption_overhead_s", "requeue_delay_s"):
            if not 0 <= getattr(self, name) < inf:
                raise WrongUsage(f"{name} must be a number of seconds from 0 up, not {getattr(self, name)}")
        if not self.until_s > 0:
            raise WrongUsage(f"until_s must be above 0, not {self.until_s}")
        if self.gpus_per_node is not None and (self.gpus_per_node < 1 or self.gpus % self.gpus_per_node):
            raise WrongUsage(f"{self.gpus} GPUs cannot be split into nodes of {self.gpus_per_node}")

    @property
    def words(self) -> str:
        """Return the choices as one line, printed with every table."""
        place = f"nodes of {self.gpus_per_node}, consolidated" if self.gpus_per_node else "slots"
        return (
            f"{self.gpus} GPUs ({place}); head of line: {self.head_of_line.value}; "
            f"preemption overhead {self.preemption_overhead_s:g} s on each resume; "
            f"requeue delay {self.requeue_delay_s:g} s"
        )
