"""The ledger of intents: each change is committed with its event and its own time, before anything else happens."""

from dataclasses import dataclass, replace
from typing import Any

from evalstopd.core.credit import credit_of
from evalstopd.core.intent import Intent, IntentEvent, State, move
from evalstopd.core.watch import Watch
from evalstopd.ports import Changes, Clock, Store

NOTHING_ELSE = Changes()


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
        return self._commit(replace(intent, **fields), kind, text)

    def move(self, intent: Intent, to: State, text: str, *, watch: Watch | None = None, **fields: Any) -> Intent:
        """Commit a change of state with its event, and the watch where one is changed by it.

        Raises ValueError for a move the table does not have.
        """
        also = Changes(watches=(watch,) if watch is not None else ())
        return self._commit(replace(move(intent, to, self.now_s), **fields), to.value, text, also)

    def undo(self, intent: Intent, how: str, watch: Watch | None = None) -> Intent:
        """Commit that a stop was undone, with its credit, and the watch where one is changed by it.

        Raises ValueError for an intent that has stopped nothing, Rejected where somebody else undid it meanwhile.
        """
        now_s = self.now_s
        credit = credit_of(intent, now_s, how)
        also = Changes(watches=(watch,) if watch is not None else (), credits=(credit,))
        undone = replace(move(intent, State.UNDONE, now_s), note=how)
        return self._commit(undone, State.UNDONE.value, f"{how}; {credit.gpu_hours:.3f} GPU-hours credited", also)

    def _commit(self, intent: Intent, kind: str, text: str, also: Changes = NOTHING_ELSE) -> Intent:
        numbered = replace(intent, events=intent.events + 1)
        event = IntentEvent(intent.id, intent.events, self.now_s, kind, text)
        self.store.record(replace(also, intents=(numbered,), events=(event,)))
        return numbered
