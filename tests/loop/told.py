"""What a test reads from a small world's store: intents, events, remarks."""

from evalstopd.core.credit import Credit
from evalstopd.core.intent import State
from evalstopd.store.memory import MemoryStore
from evalstopd.undo import Caller, Undone, parse_target, undo
from tests.fakes.world import World


def intents(world: World) -> list[tuple[str, State]]:
    store = world.store
    assert isinstance(store, MemoryStore)
    watches = store.recent(100)
    return [(i.key.job_id, i.state) for i in store.intents_of([w.key for w in watches])]


def events(world: World) -> list[tuple[str, str]]:
    store = world.store
    assert isinstance(store, MemoryStore)
    found = store.intents_of([w.key for w in store.recent(100)])
    return [(e.kind, e.text) for e in store.events_of([i.id for i in found])]


def remarks(world: World) -> list[tuple[str, str]]:
    """Return what was refused or noted; what was said in early warnings is left out."""
    store = world.store
    assert isinstance(store, MemoryStore)
    found = store.remarks_of([w.key.text for w in store.recent(100)])
    return [(r.subject.split(":")[1], r.code) for r in found if not r.code.startswith("early-warning")]


def remarks_on(world: World, subject: str) -> list[tuple[str, str]]:
    """Return the code and text of what was remarked on one subject."""
    assert isinstance(world.store, MemoryStore)
    return [(each.code, each.text) for each in world.store.remarks_of([subject])]


def said(world: World, code: str) -> list[str]:
    """Return what was remarked on any watched job under one code."""
    store = world.store
    assert isinstance(store, MemoryStore)
    found = store.remarks_of([watch.key.text for watch in store.recent(100)])
    return [each.text for each in found if each.code == code]


def credits_of(world: World) -> tuple[Credit, ...]:
    store = world.store
    assert isinstance(store, MemoryStore)
    return store.credits_of([w.key for w in store.recent(100)])


def undo_by_owner(world: World, job: str, uid: int = 1001) -> Undone:
    """Undo a stop as its owner does who can read no store."""
    return undo(world.cluster, parse_target(job), Caller(uid, lambda: False), None)
