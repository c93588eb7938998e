"""Kept checkpoints become model versions where the site wants that; what the registry does holds up no stop."""

from dataclasses import replace

from evalstopd.core.intent import Intent, State
from evalstopd.core.registry import REFUSED, WAITING
from evalstopd.store.memory import MemoryStore
from tests.fakes.registry import FakeRegistry
from tests.fakes.world import RISE_AND_FALL, RULES, World

A_WEEK_S = 7 * 86_400.0


def stopped(registry: FakeRegistry | None, *, two_way: bool = True) -> tuple[World, Intent]:
    world = World(RULES)
    world.registry = registry
    job = world.train("r1")
    if not two_way:
        world.tracker.runs["r1"].tags.clear()
    world.play(job, "r1", RISE_AND_FALL)
    return world, intent_of(world)


def intent_of(world: World) -> Intent:
    assert isinstance(world.store, MemoryStore)
    (watch,) = world.store.recent(10)
    return world.store.intents_of([watch.key])[-1]


def events(world: World) -> list[tuple[str, str]]:
    assert isinstance(world.store, MemoryStore)
    return [(event.kind, event.text) for event in world.store.events_of([intent_of(world).id])]


def test_without_the_setting_nothing_is_registered():
    world, intent = stopped(None)
    assert (intent.state, intent.model) == (State.CONFIRMED, "")
    assert "evalstop.model" not in world.tracker.runs["r1"].tags


def test_the_kept_checkpoint_becomes_a_version_and_the_run_says_which():
    registry = FakeRegistry()
    world, intent = stopped(registry)
    world.tick()
    (version,) = registry.versions["evalstop-c-1"]
    assert (version.run_id, version.step, version.path) == ("r1", 30, intent.kept_path)
    assert intent_of(world).model == "models:/evalstop-c-1/1"
    assert world.tracker.runs["r1"].tags["evalstop.model"] == "models:/evalstop-c-1/1"


def test_a_registry_that_is_down_holds_up_no_stop_and_is_said_once_and_asked_until_it_is_there():
    registry = FakeRegistry(down=True)
    world, intent = stopped(registry)
    assert intent.state is State.CONFIRMED
    for _ in range(5):
        world.tick(60.0)
    assert intent_of(world).model == WAITING
    assert [kind for kind, _ in events(world)].count("registry-waits") == 1
    registry.down = False
    for _ in range(2):
        world.tick(60.0)
    assert intent_of(world).model == "models:/evalstop-c-1/1"
    asked = len(registry.asked)
    world.tick(60.0)
    assert len(registry.asked) == asked


def test_a_registry_that_is_not_there_for_a_week_is_given_up():
    world, _ = stopped(FakeRegistry(down=True))
    world.tick(A_WEEK_S + 60.0)
    assert intent_of(world).model == REFUSED
    assert events(world)[-1] == ("not-registered", "run tags only: the registry could not be reached for a week")


def test_what_mlflow_refuses_is_said_once_and_not_asked_again():
    registry = FakeRegistry(refuses="it lies outside the run's artifacts")
    world, _ = stopped(registry)
    for _ in range(3):
        world.tick()
    assert intent_of(world).model == REFUSED
    assert [text for kind, text in events(world) if kind == "not-registered"] == [
        "run tags only: it lies outside the run's artifacts"
    ]
    assert len(registry.asked) == 1


def test_a_run_that_does_not_name_the_job_is_not_registered():
    registry = FakeRegistry()
    world, _ = stopped(registry, two_way=False)
    world.tick()
    assert registry.asked == []
    assert intent_of(world).model == REFUSED


def test_the_kill_switch_keeps_the_registry_from_being_asked():
    registry = FakeRegistry(down=True)
    world, _ = stopped(registry)
    world.tick()
    asked = len(registry.asked)
    world.switch.on = True
    world.tick()
    assert len(registry.asked) == asked


def test_a_stop_that_is_vetoed_after_the_promotion_registers_nothing_more():
    registry = FakeRegistry(down=True)
    world = World(replace(RULES, notice_s=0.0))
    world.registry = registry
    job = world.train("r1", comment="evalstop_signal=USR1@3600")
    world.play(job, "r1", RISE_AND_FALL)
    assert intent_of(world).state is State.SIGNALLED
    registry.down = False
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=keep")
    world.switch.on = True
    world.tick()
    world.switch.on = False
    world.tick()
    assert intent_of(world).state in (State.VETOED, State.ABANDONED)
    versions = len(registry.versions)
    for _ in range(2):
        world.tick()
    assert len(registry.versions) == versions
