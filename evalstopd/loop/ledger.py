"""The ledger of intents: each change is committed with its event and its own time, before anything else happens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalstopd.core.credit import credit_of
from evalstopd.core.intent import Intent, IntentEvent, State, move
from evalstopd.core.watch import Watch
from evalstopd.ports import Changes, Clock, Store

NOTHING_ELSE = Changes()


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of an intent, which is given as the event leaves it."""

    intent: Intent
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """Writes intents and their append-only events, each at the clock's time: a pass may take minutes."""

    store: Store
    clock: Clock

    @property
    def now_s(self) -> float:
        """Return the time by the clock, in seconds since the epoch."""
        return self.clock.now_s()

    def note(self, intent: Intent, kind: str, text: str, **fields: Any) -> Intent:
        """Commit an event, and changed fields if any, without a change of state."""
        return self.enter([Entry(replace(intent, **fields), kind, text)])[0]

    def move(self, intent: Intent, to: State, text: str, *, also: Changes = NOTHING_ELSE, **fields: Any) -> Intent:
        """Commit a change of state with its event, and what else is changed by it.

        Raises ValueError for a move the table does not have.
        """
        moved = replace(move(intent, to, self.now_s), **fields)
        return self.enter([Entry(moved, to.value, text)], also)[0]

    def undo(self, intent: Intent, how: str, watch: Watch | None = None) -> Intent:
        """Commit that a stop was undone, with its credit, and the watch where one is changed by it.

        Raises ValueError for an intent that has stopped nothing, Rejected where somebody else undid it meanwhile.
        """
        now_s = self.now_s
        credit = credit_of(intent, now_s, how)
        also = Changes(watches=(watch,) if watch is not None else (), credits=(credit,))
        undone = replace(move(intent, State.UNDONE, now_s), note=how)
        text = f"{how}; {credit.gpu_hours:.3f} GPU-hours credited"
        return self.enter([Entry(undone, State.UNDONE.value, text)], also)[0]

    def enter(self, entries: Sequence[Entry], also: Changes = NOTHING_ELSE) -> list[Intent]:
        """Commit events of different intents in one transaction: where many jobs end at once, each would cost time."""
        now_s = self.now_s
        after = [replace(each.intent, events=each.intent.events + 1) for each in entries]
        events = [IntentEvent(each.intent.id, each.intent.events, now_s, each.kind, each.text) for each in entries]
        self.store.record(replace(also, intents=tuple(after), events=tuple(events)))
        return after
