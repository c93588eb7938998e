"""The store, for the audit: what was decided, and the chain that seals it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from evalstopd.core.chain import Head, Held
from evalstopd.core.intent import Intent, WouldBeStop
from evalstopd.core.model import JobKey
from evalstopd.core.watch import Lived, Remark, Watch
from evalstopd.ports.clock import Span


class Accounts(Protocol):
    """What was decided within a span of time, for the audit; oldest first."""

    def intents_within(self, span: Span) -> tuple[Intent, ...]:
        """Return the intents decided within a span."""

    def would_be_within(self, span: Span) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops booked within a span."""

    def remarks_within(self, span: Span) -> tuple[Remark, ...]:
        """Return the remarks made within a span."""

    def watches_of(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Watch]:
        """Return the watches of these jobs; jobs never watched are left out."""

    def lives_of(self, keys: Sequence[JobKey]) -> tuple[Lived, ...]:
        """Return all lives of these jobs, each as it was seen last."""


class Chain(Protocol):
    """The chain over the book, for those who verify it: see core/chain.py."""

    def head(self) -> Head | None:
        """Return where the chain ends by the store's own note; None where that is gone."""

    def held(self, after: int, most: int) -> tuple[Held, ...]:
        """Return the links after a number, in order, `most` at most, each with what its row is now."""

    def unsealed(self, most: int) -> tuple[tuple[str, str], ...]:
        """Return kind and name of rows that no link seals, `most` at most of each kind."""
