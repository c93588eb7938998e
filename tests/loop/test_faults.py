"""Faults that once were: each a way in which a wrong job was stopped, or a wrong checkpoint kept."""

from dataclasses import replace

import pytest

from evalstopd.core.intent import State
from evalstopd.core.rules import ServerClass
from evalstopd.core.watch import PinState
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import intents


def test_two_metrics_of_one_run_are_never_one_curve() -> None:
    """The owner changes the metric; both rise; logged together, as trainers do."""
    world = World()
    job = world.train("r1", comment="evalstop_metric=loss evalstop_mode=min")
    for number in range(1, 8):
        now_ms = int(world.clock.time_s * 1000)
        world.tracker.log("r1", number * 10, 3.0 - 0.3 * number, key="loss", timestamp_ms=now_ms)
        world.tracker.log("r1", number * 10, 0.1 * number, key="accuracy", timestamp_ms=now_ms)
        world.keeper.save("/home/alice/out-r1", number * 10)
        if number == 5:
            world.cluster.jobs[job] = replace(world.cluster.jobs[job], comment="mlflow_run=r1 evalstop_metric=accuracy")
        world.tick()

    assert world.cluster.cancelled == []
    assert intents(world) == []
    store = world.store
    assert isinstance(store, MemoryStore)
    assert (store.recent(1)[0].best_step, store.recent(1)[0].evals) == (70, 7)


def test_a_job_that_takes_over_a_run_is_not_stopped_on_the_evals_of_the_job_before() -> None:
    world = World()
    first = world.train("r1", comment="evalstop=observe")
    world.play(first, "r1", RISE_AND_FALL)
    world.cluster.finish(first)
    world.tick()
    second = world.train("r1")
    for _ in range(3):
        world.tick()
    assert world.cluster.cancelled == []
    world.evaluate(second, "r1", 90, 0.3)
    world.tick()

    assert [key for key, _ in intents(world)] == [second]


def test_evals_of_a_life_that_are_read_only_in_the_next_one_do_not_stop_it() -> None:
    world = World(replace(RULES, tick_s=30.0))
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL[:3], 1):
        world.evaluate(job, "r1", number * 10, score)
        world.tick(30.0)
    world.evaluate(job, "r1", 40, 0.7)
    world.evaluate(job, "r1", 50, 0.6)
    world.clock.time_s += 5
    world.cluster.requeue(job)
    world.cluster.start()
    for _ in range(3):
        world.tick(30.0)
    assert world.cluster.cancelled == []
    world.evaluate(job, "r1", 60, 0.5)
    world.tick(30.0)
    world.tick(30.0)

    assert world.cluster.cancelled == [(job, 1)]


def test_a_checkpoint_of_an_earlier_run_under_the_same_name_is_not_taken() -> None:
    world = World()
    world.train("r1")
    world.keeper.save("/home/alice/out-r1", 30, at_s=world.clock.time_s - 500)
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.log("r1", number * 10, score, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick()

    assert world.keeper.pins == set()
    assert world.cluster.cancelled == []


def test_a_checkpoint_of_this_life_whose_trainer_logged_another_score_is_not_taken_until_it_is_ours() -> None:
    """Two trainings in one life that save under the same names: time cannot tell them apart, their logs can."""
    world = World()
    job = world.train("r1")
    folder = "/home/alice/out-r1"
    world.keeper.save(folder, 20, at_s=world.clock.time_s)
    world.keeper.logged[(folder, "checkpoint-20")] = 0.1
    world.tracker.log("r1", 20, 0.6, timestamp_ms=int(world.clock.time_s * 1000))
    world.tick()
    assert world.keeper.pins == set()
    key = world.store.find(job)[0].key
    assert [pin.why for pin in world.store.pins_of([key])] == ["another checkpoint"]
    world.keeper.logged[(folder, "checkpoint-20")] = 0.6
    world.tick()

    assert ("c-1-1000", 20) in world.keeper.pins


def test_a_step_evaluated_anew_in_the_same_life_is_pinned_anew_from_what_was_saved_after() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", (0.5, 0.6))
    world.tracker.log("r1", 20, 0.95, timestamp_ms=int(world.clock.time_s * 1000) + 1)
    world.tick()
    assert world.keeper.fresh.count(("c-1-1000", 20)) == 1
    world.keeper.save("/home/alice/out-r1", 20, at_s=world.clock.time_s + 1)
    world.tick()

    assert world.keeper.fresh.count(("c-1-1000", 20)) == 2


@pytest.mark.parametrize("score", [0.79, 0.8, 0.82])
def test_a_pin_stays_its_owners_where_its_step_is_evaluated_anew_and_no_other_checkpoint_comes(score: float) -> None:
    """Whoever logged that; the trainer rotated the checkpoint away. The same score once more is no other best."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", (0.5, 0.6, 0.8))
    world.keeper.checkpoints.discard(("/home/alice/out-r1", "checkpoint-30"))
    world.cluster.requeue(job)
    world.cluster.start()
    world.tick()
    world.tracker.log("r1", 30, score, timestamp_ms=int(world.clock.time_s * 1000) + 1)
    world.tick()
    for number in (40, 50, 60, 70):
        world.evaluate(job, "r1", number, 0.7 - number / 200)
        world.tick()

    assert ("c-1-1000", 30) in world.keeper.pins
    assert world.cluster.cancelled == ([(job, 1)] if score == 0.8 else [])
    (pin,) = (each for each in world.store.pins_of([watch.key for watch in world.store.recent(1)]) if each.step == 30)
    assert pin.state is (PinState.PUBLISHED if score == 0.8 else PinState.STALE)


def test_a_checkpoint_the_keeper_fails_on_is_given_up_and_costs_the_others_nothing() -> None:
    world = World()
    bad, good = world.train("r1"), world.train("r2")
    world.keeper.failing.add(("c-1-1000", 30))
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(bad, "r1", number * 10, score)
        world.evaluate(good, "r2", number * 10, score)
        world.tick()

    assert world.cluster.cancelled == [(good, 0)]
    assert {state for job, state in intents(world) if job == bad} == {State.ABANDONED}


def test_pins_stop_when_the_pass_has_no_time_left_and_go_on_in_the_next() -> None:
    world = World(replace(RULES, tick_s=30.0))
    jobs = [world.train(f"r{n}", uid=1001 + n) for n in range(3)]

    class Slow:
        def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
            def call(*arguments: object) -> object:
                world.clock.time_s += 10
                return getattr(world.keeper, name)(*arguments)

            return call

    for n, job in enumerate(jobs):
        world.evaluate(job, f"r{n}", 10, 0.5)
    world.tick(ports=replace(world.ports(), keeper=Slow()))
    assert len(world.keeper.pins) == 2
    world.tick()

    assert len(world.keeper.pins) == 3


def test_a_looser_rule_written_during_the_notice_is_heeded() -> None:
    world = World(replace(RULES, notice_s=2.5))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_k=20")
    for _ in range(5):
        world.tick()

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.ABANDONED)]


def test_a_job_whose_stop_was_open_for_long_is_read_at_its_own_pace_once_that_is_given_up() -> None:
    """Each pass read it meanwhile, with nothing new: that is no reason to look for its next eval ever more rarely."""
    world = World(replace(RULES, notice_s=1e6))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    for _ in range(40):
        world.tick()
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_k=3")
    world.tick()
    assert intents(world) == [(job, State.ABANDONED)]
    for number, score in ((6, 0.5), (7, 0.4)):
        world.evaluate(job, "r1", number * 10, score)
        for _ in range(20):
            world.tick()

    assert {state for _, state in intents(world)} == {State.ABANDONED, State.WARNED}


def test_enforce_written_after_a_warning_lets_a_later_decline_stop_the_job() -> None:
    world = World(replace(RULES, server=ServerClass.OPEN))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=enforce")
    for number, score in enumerate(RISE_AND_FALL[5:], 6):
        world.tick()
        world.evaluate(job, "r1", number * 10, score)
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_a_lost_best_is_said_once_not_at_every_eval() -> None:
    world = World()
    job = world.train("r1")
    for number, score in enumerate((*RISE_AND_FALL, 0.3, 0.2, 0.1, 0.05), 1):
        world.tracker.log("r1", number * 10, score, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick()

    assert intents(world) == [(job, State.ABANDONED)]
    assert [each.kind for each in world.notifier.told] == ["early-warning", "given-up"]


def test_declines_seen_under_the_kill_switch_are_judged_when_it_is_gone() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.switch.on = True
    for number, score in ((40, 0.7), (50, 0.6)):
        world.evaluate(job, "r1", number, score)
        world.tick()
    assert intents(world) == []
    assert world.tracker.writes == []
    world.switch.on = False
    world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_a_clock_put_back_an_hour_blinds_nobody() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.clock.time_s -= 3600
    for number, score in ((40, 0.7), (50, 0.6)):
        world.evaluate(job, "r1", number, score)
        world.tick(5.0)
    world.tick(5.0)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_run_without_an_output_folder_is_not_waited_for() -> None:
    world = World()
    job = world.train("r1")
    world.tracker.runs["r1"].params.clear()
    world.play(job, "r1", RISE_AND_FALL)
    store = world.store
    assert isinstance(store, MemoryStore)

    assert {pin.state.value for pin in store.pins_of([store.recent(1)[0].key])} == {"lost"}
    assert intents(world) == [(job, State.ABANDONED)]


@pytest.mark.parametrize(
    ("first", "words"), [(-30, "step -30 is below 0"), (10**15, "step 1000000000000000 has more than 15 digits")]
)
def test_a_step_that_no_checkpoint_can_have_is_said_in_plain_words_and_asked_of_nobody(first: int, words: str) -> None:
    world = World()
    job = world.train("r1")
    for number, score in enumerate((0.8, 0.7, 0.6, 0.5)):
        world.evaluate(job, "r1", first + number, score)
        world.tick()
    store = world.store
    assert isinstance(store, MemoryStore)

    (pin,) = store.pins_of([store.recent(1)[0].key])
    assert (pin.state.value, pin.why) == (
        "lost",
        f"no checkpoint is looked for: {words}; log evals at the training's own steps, which count from 0",
    )
    assert intents(world) == [(job, State.ABANDONED)]
    assert world.cluster.cancelled == []


def test_two_slashes_before_a_folder_are_one() -> None:
    world = World()
    job = world.train("r1")
    world.tracker.runs["r1"].params["output_dir"] = "//home/alice/out-r1/"
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]


def test_what_a_job_logs_last_before_it_ends_is_kept() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY[:3])
    world.evaluate(job, "r1", 40, 0.9)
    world.cluster.finish(job)
    world.tick()
    store = world.store
    assert isinstance(store, MemoryStore)
    watch = store.recent(1)[0]

    assert (watch.evals, watch.best_step, watch.ending is not None) == (4, 40, True)
    assert intents(world) == []
