"""What the emulated scheduler decided, in order: for tests and for looking at a run."""

from typing import NamedTuple


class Decision(NamedTuple):
    """One decision: `start`, `yield`, `stop` or `last` (put behind all others), of one job. Time in seconds."""

    at_s: float
    verb: str
    job_id: str
