"""Time: who tells it, and a span of it."""

from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Tells the time; nothing else in the project does."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Span:
    """From a moment (seconds since the epoch) on, up to but without another."""

    since_s: float
    until_s: float

    def __contains__(self, moment_s: float) -> bool:
        return self.since_s <= moment_s < self.until_s
