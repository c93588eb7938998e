"""The store, for listings and reports."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from evalstopd.core.caps import BreakerTurn
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import JobKey
from evalstopd.core.watch import Pin, Remark, Watch


class Archive(Protocol):
    """What is kept, for listings and reports; ended jobs too. Newest first."""

    def find(self, job_id: str) -> tuple[Watch, ...]:
        """Return the watched jobs that have had this id."""

    def recent(self, limit: int) -> tuple[Watch, ...]:
        """Return the watched jobs seen last."""

    def watched_since(self, first_s: float) -> tuple[Watch, ...]:
        """Return the watched jobs first seen at a moment (seconds since the epoch) or later."""

    def intents_of(self, keys: Sequence[JobKey]) -> tuple[Intent, ...]:
        """Return the intents of these jobs."""

    def events_of(self, intent_ids: Sequence[str]) -> tuple[IntentEvent, ...]:
        """Return the events of these intents, in order."""

    def pins_of(self, keys: Sequence[JobKey]) -> tuple[Pin, ...]:
        """Return the pins of these jobs."""

    def would_be_of(self, keys: Sequence[JobKey]) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops of these jobs."""

    def credits_of(self, keys: Sequence[JobKey]) -> tuple[Credit, ...]:
        """Return what was credited for undone stops of these jobs."""

    def remarks_of(self, subjects: Sequence[str]) -> tuple[Remark, ...]:
        """Return what was remarked on these subjects (a job key's text, or `site`)."""

    def breakers(self) -> tuple[BreakerTurn, ...]:
        """Return the last turn of each breaker, by cluster and scope."""

    def intents_by_state(self) -> Mapping[State, int]:
        """Return how many intents are in each state; states without any are left out."""
