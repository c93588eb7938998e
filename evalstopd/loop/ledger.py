"""The ledger of intents: each change is committed together with its event, before anything else happens."""

from dataclasses import dataclass, replace
from typing import Any

from evalstopd.core.intent import Intent, IntentEvent, State, move
from evalstopd.ports import Changes, Store


@dataclass(frozen=True, slots=True)
class Ledger:
    """Writes intents and their append-only events at one moment of time."""

    store: Store
    now_s: float

    def note(self, intent: Intent, kind: str, text: str, **fields: Any) -> Intent:
        """Commit an event, and changed fields if any, without a change of state."""
        return self._commit(replace(intent, **fields), kind, text)

    def move(self, intent: Intent, to: State, text: str, **fields: Any) -> Intent:
        """Commit a change of state with its event. Raises ValueError for a move the table does not have."""
        return self._commit(replace(move(intent, to, self.now_s), **fields), to.value, text)

    def _commit(self, intent: Intent, kind: str, text: str) -> Intent:
        numbered = replace(intent, events=intent.events + 1)
        event = IntentEvent(intent.id, intent.events, self.now_s, kind, text)
        self.store.record(Changes(intents=(numbered,), events=(event,)))
        return numbered
