"""The daemon's log reaches no owner: what went there alone is called logged, and is no notice."""

from dataclasses import replace

import pytest

from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.core.words import early_state
from evalstopd.ports import Receipt, to_admin
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events

NOTICE = replace(RULES, notice_s=2.5)
ALONE = "the message is in the daemon's log alone"


def logging_world() -> World:
    world = World(NOTICE)
    world.notifier = LogNotifier()  # type: ignore[assignment]
    return world


def test_what_is_only_logged_is_called_logged_in_every_place() -> None:
    world = logging_world()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    store = world.store
    assert isinstance(store, MemoryStore)
    watch = store.recent(1)[0]
    assert watch.early is not None
    assert early_state(watch.early) == f"the owner was not told at step 40, declining 1 of 2: {ALONE}"
    said = [each.code for each in store.remarks_of([watch.key.text])]
    assert sorted(said) == ["early-warning", "early-warning-logged"]
    world.play(job, "r1", RISE_AND_FALL)
    for _ in range(4):
        world.tick()

    assert ("warned", f"the owner was not told (warning): {ALONE}") in events(world)
    assert ("logged", f"the owner was not told (stopped): {ALONE}") in events(world)
    assert not [text for _, text in events(world) if "owner was told" in text]


def test_a_warning_in_the_log_alone_shortens_no_notice() -> None:
    """Logged at 1004, decided at 1005: nothing before 1007.5."""
    world = logging_world()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.tick(2.0)
    assert world.cluster.cancelled == []
    world.tick(0.5)

    assert world.cluster.cancelled == [(job, 0)]


@pytest.mark.parametrize("later", [False, True])
def test_a_message_that_cannot_be_sent_delays_nothing_and_is_counted(later: bool) -> None:
    world = World(replace(NOTICE, rule="k-declines:k=1"))
    world.notifier.broken, world.notifier.later = "refused", later
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.evaluate(job, "r1", 40, RISE_AND_FALL[3])
    counted = [world.tick().counts["not told"], world.tick(2.5).counts["not told"]]

    assert sum(counted) == 1
    assert world.cluster.cancelled == [(job, 0)]
    assert "the owner could not be told (warning): refused" in [text for _, text in events(world)]


def test_the_admin_reads_the_log() -> None:
    message = to_admin("a limit was lifted", "why", "enforce-override", "ref")

    assert LogNotifier().tell(message).event == "told"
    assert Receipt(message, sent=False, logged=True).text == "the admin was told (enforce-override)"
