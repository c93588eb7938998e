"""Breakers by hand: what holds, and an admin's reset of it. The daemon reads the new turn in its next pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.caps import SITE, BreakerTurn, Turn, holding
from evalstopd.core.watch import Remark
from evalstopd.errors import Rejected
from evalstopd.ports import Changes


class BreakerBook(Protocol):
    """The part of the store that this needs."""

    def breakers(self) -> tuple[BreakerTurn, ...]:
        """Return the last turn of each breaker."""

    def record(self, changes: Changes) -> None:
        """Write all changes, or none."""


@dataclass(frozen=True, slots=True)
class BreakerRow:
    """One breaker as it is shown: times in seconds since the epoch."""

    cluster: str
    scope: str
    holds: bool
    turn: str
    at_s: float
    until_s: float
    text: str
    by: str


def breaker_rows(book: BreakerBook, now_s: float) -> tuple[BreakerRow, ...]:
    """Return every breaker that ever turned, with its last turn."""
    return tuple(
        BreakerRow(
            each.cluster,
            each.scope,
            bool(holding([each], now_s)),
            each.turn,
            each.at_s,
            each.until_s,
            each.text,
            each.by,
        )
        for each in book.breakers()
    )


def reset(book: BreakerBook, scope: str, why: str, by: str, now_s: float) -> Sequence[BreakerTurn]:
    """Reset a breaker that holds, on every cluster. Raises Rejected where none of this name holds."""
    held = [each for each in book.breakers() if each.scope == scope and holding([each], now_s)]
    if not held:
        raise Rejected(f"no breaker named {scope} holds; `evalstopd breakers` lists them")
    turns = tuple(BreakerTurn(each.cluster, scope, Turn.RESET, now_s, now_s, why, by) for each in held)
    said = Remark(SITE, f"breaker-reset {scope} {now_s:.0f}", f"{by} reset the breaker {scope}: {why}", now_s)
    book.record(Changes(breakers=turns, remarks=(said,)))
    return turns
