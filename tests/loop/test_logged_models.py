"""Checkpoints that are logged models alone: found and named, and no stop rests on one unless the site says so."""

from dataclasses import replace

import pytest

from evalstopd.core.intent import Intent, State
from evalstopd.core.registry import REFUSED
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.core.watch import Pin, PinState
from evalstopd.core.words import LOGGED, PINNED
from evalstopd.ports import Span
from evalstopd.report.audit.gather import audit_report
from evalstopd.report.audit.page import as_text
from evalstopd.report.render import _decisions
from evalstopd.report.rows import explain
from evalstopd.store.memory import MemoryStore
from tests.fakes.registry import FakeRegistry
from tests.fakes.tracker import FakeModel
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World

COUNTS = replace(RULES, logged_models=True)


def play(world: World, job: str, scores: tuple[float, ...], *, late: int = 0) -> None:
    """Log each eval and its model, `late` evals afterwards; nothing is saved to a file."""
    for number, score in enumerate(scores, 1):
        if world.cluster.jobs[job].phase != "running":
            return
        world.tracker.log("r1", number * 10, score, timestamp_ms=int(world.clock.time_s * 1000))
        if number > late:
            step = (number - late) * 10
            world.tracker.runs["r1"].models[f"m-{step}"] = FakeModel(step, made_s=world.clock.time_s)
        world.tick()


def story(rules: Rules, *, registry: FakeRegistry | None = None, late: int = 0) -> tuple[World, str]:
    world = World(rules)
    world.registry = registry
    job = world.train("r1")
    play(world, job, RISE_AND_FALL, late=late)
    world.tick()
    return world, job


def store_of(world: World) -> MemoryStore:
    assert isinstance(world.store, MemoryStore)
    return world.store


def intents(world: World) -> tuple[Intent, ...]:
    return store_of(world).intents_of([each.key for each in store_of(world).recent(10)])


def pins(world: World) -> dict[int, Pin]:
    (watch,) = store_of(world).recent(1)
    return {pin.step: pin for pin in store_of(world).pins_of([watch.key])}


def test_by_default_no_stop_rests_on_a_logged_model_and_the_run_says_which_it_is() -> None:
    registry = FakeRegistry()
    world, _ = story(RULES, registry=registry)

    (intent,) = intents(world)
    assert (world.cluster.cancelled, intent.state) == ([], State.ABANDONED)
    assert intent.note == "no safe checkpoint: it is the logged model models:/m-30 alone, which no stop rests on here"
    tags = world.tracker.runs["r1"].tags
    assert (tags["evalstop.checkpoint"], tags["evalstop.checkpoint_kind"]) == ("models:/m-30", LOGGED)
    assert (tags["evalstop.state"], tags["evalstop.kept_step"]) == ("abandoned", "30")
    assert registry.asked == []


def test_where_the_site_lets_it_count_the_job_is_stopped_and_its_logged_model_promoted() -> None:
    registry = FakeRegistry()
    world, job = story(COUNTS, registry=registry)

    (intent,) = intents(world)
    assert (world.cluster.cancelled, intent.kept_path) == ([(job, 0)], "models:/m-30")
    assert world.tracker.runs["r1"].tags["evalstop.checkpoint_kind"] == LOGGED
    (version,) = registry.versions["evalstop-c-1"]
    assert (version.step, version.path) == (30, "models:/m-30")
    assert world.keeper.best == {}


def test_nowhere_is_it_called_a_pin() -> None:
    """Explain, the audit, the history and the owner's message name the kind; nothing counts it among the pinned."""
    world, job = story(COUNTS)
    store = store_of(world)

    found = explain(store, store, job)
    assert found is not None
    lines = "\n".join(_decisions(found))
    assert f"checkpoint of step 30: models:/m-30, {LOGGED}; by its listing 2 files, 5300 bytes" in lines
    assert f"promoted: step 30 is models:/m-30, {LOGGED}" in lines
    text = as_text(audit_report(store, Span(0.0, 1e12), "test"))
    assert LOGGED in " ".join(text.split())
    assert not pins(world)[30].safe
    assert any(LOGGED in each.text for each in world.notifier.told)


def test_the_run_of_a_pinned_checkpoint_says_so() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)

    assert world.tracker.runs["r1"].tags["evalstop.checkpoint_kind"] == PINNED


def test_files_are_pinned_where_there_are_any_and_the_tracker_is_not_asked() -> None:
    world = World(COUNTS)
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.runs["r1"].models[f"m-{number}"] = FakeModel(number * 10, made_s=world.clock.time_s)
        world.evaluate(job, "r1", number * 10, score)
        world.tick()

    assert world.models.asked == []
    assert world.keeper.best != {}


def test_a_run_without_logged_models_costs_no_question() -> None:
    world = World(COUNTS)
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.log("r1", number * 10, score, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick()

    assert (world.models.asked, world.cluster.cancelled) == ([], [])
    assert store_of(world).find(job)


def test_a_model_that_is_logged_after_its_eval_is_waited_for() -> None:
    world, job = story(COUNTS, late=1)
    assert world.cluster.cancelled == [(job, 0)]


def test_on_an_open_server_it_never_counts_even_where_the_owner_asks_for_enforce() -> None:
    """There anybody can make a logged model in the run, so that a job without any checkpoint would be stopped."""
    world = World(replace(COUNTS, server=ServerClass.OPEN))
    job = world.train("r1", comment="evalstop=enforce")
    play(world, job, RISE_AND_FALL)

    assert world.cluster.cancelled == []
    assert "no stop rests on here" in intents(world)[0].note


def test_a_setting_that_comes_later_counts_for_no_job_already_seen_and_one_that_goes_does_at_once() -> None:
    for first, then in ((RULES, COUNTS), (COUNTS, RULES)):
        world = World(first)
        job = world.train("r1")
        play(world, job, RISE_AND_FALL[:3])
        world.rules = then
        for number, score in enumerate(RISE_AND_FALL[3:], 4):
            world.tracker.log("r1", number * 10, score, timestamp_ms=int(world.clock.time_s * 1000))
            world.tick()
        assert world.cluster.cancelled == []


@pytest.mark.parametrize("change", ["gone", "pending", "other files"])
def test_a_logged_model_that_is_not_as_it_was_found_holds_no_stop(change: str) -> None:
    """It is looked at once more before the stop: who may write to the run may delete it."""
    world = World(replace(COUNTS, notice_s=10.0))
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:5])
    models = world.tracker.runs["r1"].models
    if change == "gone":
        del models["m-30"]
    elif change == "pending":
        models["m-30"].ready = False
    else:
        models["m-30"].files["MLmodel"] += 1
    world.tick(11.0)
    world.tick()

    assert world.cluster.cancelled == []
    assert (intents(world)[0].state, pins(world)[30].state) == (State.ABANDONED, PinState.LOST)


def test_a_tracker_that_does_not_answer_loses_no_checkpoint_and_is_asked_once_a_pass() -> None:
    world = World(COUNTS)
    world.models.down = True
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:5])
    assert pins(world)[30].state is PinState.WANTED
    asked = len(world.models.asked)
    world.tick()
    assert len(world.models.asked) == asked + 1

    world.models.down = False
    world.tick()
    assert world.cluster.cancelled == [(job, 0)]


def test_a_tracker_that_goes_away_before_the_last_look_stops_nothing_until_it_is_back() -> None:
    world = World(replace(COUNTS, notice_s=5.0))
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:5])
    world.models.down = True
    world.tick(6.0)
    assert world.cluster.cancelled == []
    world.models.down = False
    world.tick()
    assert world.cluster.cancelled == [(job, 0)]


def test_that_it_is_a_logged_model_alone_is_said_once_not_at_every_eval() -> None:
    world = World(RULES)
    play(world, world.train("r1"), (*RISE_AND_FALL, 0.3, 0.25, 0.2))

    assert len(intents(world)) == 1


def test_a_step_that_a_later_life_evaluates_anew_is_looked_for_anew() -> None:
    world = World(COUNTS)
    job = world.train("r1")
    play(world, job, (0.1, 0.4, 0.8, 0.7))
    assert pins(world)[30].state is PinState.LOGGED
    world.cluster.requeue(job)
    world.cluster.start()
    world.tick()
    world.tracker.log("r1", 30, 0.9, timestamp_ms=int(world.clock.time_s * 1000))
    world.tick()
    assert pins(world)[30].state is PinState.WANTED
    world.tracker.log("r1", 40, 0.7, timestamp_ms=int(world.clock.time_s * 1000))
    world.tick()
    assert pins(world)[30].state is PinState.WANTED, "the one of the earlier life is another checkpoint"
    world.tracker.runs["r1"].models["m-30b"] = FakeModel(30, made_s=world.clock.time_s)
    world.tick()
    assert pins(world)[30].path == "models:/m-30b"


def test_a_healthy_run_with_logged_models_goes_on() -> None:
    world = World(COUNTS)
    job = world.train("r1")
    play(world, job, HEALTHY)
    assert (world.cluster.cancelled, intents(world)) == ([], ())


def test_a_registry_that_refuses_leaves_the_tags() -> None:
    world, _ = story(COUNTS, registry=FakeRegistry(refuses="no permission"))
    world.tick()
    (intent,) = intents(world)
    assert intent.model == REFUSED
    assert world.tracker.runs["r1"].tags["evalstop.checkpoint"] == "models:/m-30"
