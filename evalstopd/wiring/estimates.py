"""What estimates of jobs' lengths rest on: whether they are needed, and accounting, read far back."""

from collections.abc import Iterator

from evalstopd.core.estimates import PastLife
from evalstopd.ports import Span
from evalstopd.settings import Settings
from evalstopd.upkeep.habits import DAY_S
from evalstopd.wiring.slurm import make_past_jobs

_PATIENT_S = 60.0
NEED_LENGTHS = ("sjf-est", "srtf-est")


def estimate_days(settings: Settings) -> float | None:
    """Return how far back accounting is read for estimates; None where nothing needs them."""
    policies = {each.partition(":")[0] for each in (settings.priorities.policy, settings.preempt.policy)}
    needed = not policies.isdisjoint(NEED_LENGTHS)
    return settings.estimates.days if needed or settings.estimates.always else None


def read_past(settings: Settings, since_s: float, now_s: float) -> Iterator[PastLife]:
    """Yield the lives that ended since a moment, a day a call, for who can wait. Raises Unavailable."""
    past, begin_s = make_past_jobs(settings, _PATIENT_S), float(int(since_s))
    while begin_s < now_s:
        yield from past.ended(Span(begin_s, begin_s + DAY_S))
        begin_s += DAY_S
