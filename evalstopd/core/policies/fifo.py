"""First in, first out: the order of submission."""

from dataclasses import dataclass

from evalstopd.core.model import JobView


@dataclass(frozen=True, slots=True)
class Fifo:
    """Rank jobs by submit time; never preempt (the paper's base FIFO)."""

    preemptive: bool = False

    @property
    def spec(self) -> str:
        """Return the policy as text."""
        return "fifo"

    def key(self, job: JobView, now_s: float) -> tuple[float, ...]:
        """Return the job's submit time."""
        del now_s
        return (job.submitted_s,)
