"""The loop over a small world: what is stopped, what is kept, and what is never touched."""

from dataclasses import replace

import pytest

from evalstopd.core.caps import UNLIMITED
from evalstopd.core.intent import State
from evalstopd.core.model import JobKey, Phase, Rung
from evalstopd.ports import Ports
from evalstopd.store.memory import MemoryStore
from evalstopd.veto import keep
from tests.fakes.overlaid import Overlaid
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents


def test_an_over_optimising_job_is_stopped_its_best_kept_and_its_gpus_freed() -> None:
    world = World(gpus=8)
    job = world.train("r1")
    waiting = world.cluster.submit(1002, 8)
    world.play(job, "r1", RISE_AND_FALL)
    world.tick()

    assert world.cluster.cancelled == [(job, 0)]
    assert world.cluster.jobs[waiting].phase is Phase.RUNNING
    assert world.keeper.best == {"c-1-1000": 30}
    assert ("/home/alice/out-r1", "checkpoint-30") not in world.keeper.checkpoints
    assert intents(world) == [(job, State.CONFIRMED)]
    assert [kind for kind, _ in events(world)] == [
        "planned", "warned", "promoted", "cancelling", "cancelled", "confirmed", "run", "telling", "told", "handed",
    ]  # fmt: skip
    assert events(world)[-1] == ("handed", f"its 8 GPUs went to {waiting}")


def test_tags_status_events_and_messages_say_the_same_words() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)
    reason = "the eval score fell 2 times in a row, from the best 0.8 at step 30 to 0.6 at step 50"

    tags = world.tracker.runs["r1"].tags
    assert tags["evalstop.reason"] == reason
    assert tags["evalstop.state"] == "confirmed"
    assert tags["evalstop.best_step"] == "30"
    assert tags["evalstop.checkpoint"] == "/pins/c-1-1000/best"
    assert world.tracker.runs["r1"].status == "KILLED"
    assert dict(events(world))["planned"] == reason
    assert reason in dict(events(world))["confirmed"]
    assert [message.kind for message in world.notifier.told] == ["early-warning", "stopped"]
    assert reason in world.notifier.told[-1].text


def test_a_healthy_job_is_left_alone() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY)

    assert world.cluster.cancelled == []
    assert intents(world) == []


def test_each_new_best_is_pinned_and_only_the_newest_candidates_are_kept() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY)

    assert world.keeper.pins == {("c-1-1000", 50), ("c-1-1000", 60), ("c-1-1000", 70)}


def test_observe_touches_nothing_and_keeps_book() -> None:
    world = World(replace(RULES, rung=Rung.OBSERVE))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)
    store = world.store
    assert isinstance(store, MemoryStore)
    booked = store.would_be_of([store.recent(1)[0].key])

    assert [(stop.evidence.trigger_step, stop.evidence.best_step) for stop in booked] == [(50, 30)]
    assert world.cluster.cancelled == []
    assert world.keeper.pins == set()
    assert world.tracker.writes == []
    assert world.notifier.told == []


def test_warn_tells_once_pins_and_stops_nothing() -> None:
    world = World(replace(RULES, rung=Rung.WARN))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.WARNED)]
    assert len(world.notifier.told) == 1
    assert "evalstopd keep 1" in world.notifier.told[0].text


@pytest.mark.parametrize("after", [0, 3, 4, 5])
def test_keep_written_at_any_time_before_the_cancel_wins(after: int) -> None:
    world = World(replace(RULES, notice_s=2.0))
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(job, "r1", number, score)
        if number == after + 1:
            keep(world.cluster, job, lambda: None)
        world.tick()

    assert world.cluster.cancelled == []
    assert all(state is State.VETOED for _, state in intents(world))


def test_no_stop_waits_for_what_is_written_into_runs() -> None:
    """Two stops of one pass, and the confirmations of others in the same pass: all cancels are asked for first."""
    world = World(replace(RULES, caps=UNLIMITED))
    done: list[str] = []

    def noted(name: str, method):  # type: ignore[no-untyped-def]
        def call(*args):  # type: ignore[no-untyped-def]
            done.append(name)
            return method(*args)

        return call

    def ports() -> Ports:
        runs = Overlaid(world.tracker, tag=noted("tag", world.tracker.tag), mark_killed=world.tracker.mark_killed)
        cluster = Overlaid(world.cluster, cancel=noted("cancel", world.cluster.cancel))
        return replace(world.ports(), runs=runs, cluster=cluster)

    first, second, third = (world.train(run) for run in ("r1", "r2", "r3"))
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(first, "r1", number, score)
        if number > 1:
            world.evaluate(second, "r2", number - 1, RISE_AND_FALL[number - 2])
            world.evaluate(third, "r3", number - 1, RISE_AND_FALL[number - 2])
        done.clear()
        world.tick(ports=ports())
    assert done[0] == "cancel"
    assert "tag" in done
    world.evaluate(second, "r2", 5, RISE_AND_FALL[4])
    world.evaluate(third, "r3", 5, RISE_AND_FALL[4])
    done.clear()
    world.tick(ports=ports())

    assert [(job, 0) for job in (first, second, third)] == sorted(world.cluster.cancelled)
    assert done[0] == "cancel"
    assert done.count("cancel") == 1
    assert "tag" in done
    assert (first, State.CONFIRMED) in intents(world)


def test_keep_between_the_pass_and_its_last_look_wins() -> None:
    world = World()
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL[:4], 1):
        world.evaluate(job, "r1", number, score)
        world.tick()
    world.evaluate(job, "r1", 5, RISE_AND_FALL[4])
    looked = world.cluster.look

    def veto_first(job_ids):  # type: ignore[no-untyped-def]
        world.cluster.jobs[job] = replace(
            world.cluster.jobs[job], comment=f"{world.cluster.jobs[job].comment} evalstop=keep"
        )
        return looked(job_ids)

    ports = world.ports()
    world.tick(ports=replace(ports, cluster=Overlaid(world.cluster, look=veto_first)))

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.VETOED)]


def test_a_decline_that_spans_a_requeue_and_a_second_run_is_one_curve() -> None:
    world = World()
    job = world.train("r1")
    for number, score in ((10, 0.5), (20, 0.8), (30, 0.7)):
        world.evaluate(job, "r1", number, score)
        world.tick()
    world.clock.time_s += 100
    world.cluster.requeue(job)
    world.tick()
    world.tracker.add_run("r2", **{"slurm.job_id": "1"})
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], comment="mlflow_run=r2")
    world.cluster.start()
    world.tick()
    assert world.cluster.cancelled == []
    world.evaluate(job, "r2", 40, 0.6)
    world.tick()

    assert world.cluster.cancelled == [(job, 1)]


def test_a_best_step_that_a_later_life_evaluates_anew_is_pinned_anew() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", (0.5, 0.8))
    world.cluster.requeue(job)
    world.cluster.start()
    world.tick()
    world.keeper.fresh.clear()
    world.evaluate(job, "r1", 20, 0.9)
    world.tick()

    assert ("c-1-1000", 20) in world.keeper.fresh


def test_a_decline_of_an_earlier_life_alone_never_stops_the_later_one() -> None:
    world = World(replace(RULES, rule="k-declines:k=2"))
    job = world.train("r1", comment="evalstop=observe")
    world.play(job, "r1", (0.8, 0.7, 0.6))
    world.cluster.requeue(job)
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], comment="mlflow_run=r1")
    world.tick()
    world.cluster.start()
    world.tick()
    world.tick()

    assert world.cluster.cancelled == []


def test_without_a_safe_checkpoint_the_stop_becomes_a_warning() -> None:
    world = World()
    world.train("r1")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.log("r1", number, score)
        world.tick()
    world.tick()

    assert world.cluster.cancelled == []
    assert {state for _, state in intents(world)} == {State.ABANDONED}
    assert "no safe checkpoint" in dict(events(world))["abandoned"]


def test_a_pin_that_changed_is_not_promoted_and_the_job_goes_on() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.keeper.damaged.add(("c-1-1000", 30))
    world.evaluate(job, "r1", 50, 0.6)
    world.tick()

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.ABANDONED)]


@pytest.mark.parametrize("what", ["cluster", "tracker", "keeper"])
def test_an_outage_stops_nothing_and_the_next_tick_recovers(what: str) -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    getattr(world, what).down = True
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    for _ in range(3):
        world.tick()
        assert world.cluster.cancelled == []
    getattr(world, what).down = False
    world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_mlflow_gone_after_the_decision_holds_the_cancel_back() -> None:
    world = World(replace(RULES, notice_s=1.5))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    world.tracker.down = True
    for _ in range(5):
        world.tick()
    assert world.cluster.cancelled == []
    world.tracker.down = False
    world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_one_broken_run_costs_its_own_job_only() -> None:
    world = World()
    broken, fine = world.train("r1"), world.train("r2")
    world.tracker.runs["r1"].broken = True
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(fine, "r2", number, score)
        world.tick()

    assert world.cluster.cancelled == [(fine, 0)]
    assert world.cluster.jobs[broken].phase is Phase.RUNNING


def test_the_kill_switch_stops_every_act_within_the_pass() -> None:
    world = World(replace(RULES, notice_s=1.5))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.switch.on = True
    pins = set(world.keeper.pins)
    for _ in range(3):
        world.tick()

    assert world.cluster.cancelled == []
    assert world.keeper.pins == pins
    assert intents(world) == [(job, State.ABANDONED)]


def test_a_cluster_that_ignores_the_cancel_is_asked_again_and_then_given_up() -> None:
    world = World()
    world.cluster.deaf = True
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    for _ in range(8):
        world.tick(130.0)

    assert len(world.cluster.cancelled) == 5
    assert intents(world) == [(job, State.ABANDONED)]


def test_the_owners_signal_comes_before_the_cancel_with_its_grace() -> None:
    world = World()
    job = world.train("r1", comment="evalstop_signal=USR1@3")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert world.cluster.signalled == [(job, "USR1")]
    assert world.cluster.cancelled == []
    world.tick()
    assert world.cluster.cancelled == []
    world.tick(3.0)

    assert world.cluster.cancelled == [(job, 0)]
    assert world.cluster.signalled == [(job, "USR1")]


def test_without_the_runs_own_tag_the_stop_goes_on_and_nothing_is_written() -> None:
    world = World()
    job = world.train("r1")
    del world.tracker.runs["r1"].tags["slurm.job_id"]
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]
    assert world.tracker.writes == []
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert dict(events(world))["run"].startswith("nothing was written to the run")


def test_a_new_best_withdraws_a_stop_and_a_mere_rise_does_not() -> None:
    for last, state in ((0.9, State.ABANDONED), (0.7, State.CONFIRMED)):
        world = World(replace(RULES, notice_s=1.5))
        job = world.train("r1")
        world.play(job, "r1", (*RISE_AND_FALL[:5], last))
        world.tick()
        world.tick()

        assert intents(world)[0] == (job, state)


def test_evidence_is_frozen_when_a_late_point_changes_the_curve() -> None:
    world = World(replace(RULES, notice_s=1.5))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.tracker.log("r1", 35, 0.75)
    world.tick()
    store = world.store
    assert isinstance(store, MemoryStore)
    intent = store.intents_of([JobKey("c", job, 1001, 1000)])[0]

    assert intent.evidence.steps == (10, 20, 30, 40, 50)


def test_a_tick_with_nothing_new_is_one_scheduler_call_and_no_read_before_it_is_due() -> None:
    world = World(replace(RULES, tick_s=30.0))
    job = world.train("r1")
    world.evaluate(job, "r1", 1, 0.1)
    world.tick(30.0)
    world.evaluate(job, "r1", 2, 0.2)
    world.tick(600.0)
    world.cluster.calls.clear()
    world.tracker.reads.clear()
    world.tick(30.0)

    assert world.cluster.calls == ["queue"]
    assert world.tracker.reads == []


def test_a_vanished_job_is_asked_about_and_never_taken_for_ended() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", HEALTHY[:2])
    gone = world.cluster.jobs.pop(job)
    world.tick()
    store = world.store
    assert isinstance(store, MemoryStore)
    assert store.recent(1)[0].ending is None
    world.cluster.jobs[job] = gone
    world.play(job, "r1", HEALTHY)

    assert store.recent(1)[0].evals == 7
    assert store.recent(1)[0].vanished_s is None


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.WARN])
@pytest.mark.parametrize("period", [1, 2, 3, 4, 7])
def test_any_poll_period_decides_on_the_same_eval_with_the_same_evidence(period: int, rung: Rung) -> None:
    """A rise after the trigger in the same reading changes nothing: a fast poll would have decided before it."""
    world = World(replace(RULES, rung=rung))
    job = world.train("r1")
    for number, score in enumerate((*HEALTHY, 0.6, 0.5, 0.55, 0.5, 0.6, 0.65, 0.6), 1):
        world.evaluate(job, "r1", number, score)
        if number % period == 0:
            world.tick()
    world.tick()
    store = world.store
    assert isinstance(store, MemoryStore)
    key = store.recent(1)[0].key
    evidence = [each.evidence for each in (*store.would_be_of([key]), *store.intents_of([key]))][-1]

    assert (evidence.trigger_step, evidence.best_step, evidence.declines) == (9, 7, 2)
    assert evidence.scores == (*HEALTHY, 0.6, 0.5)
    assert evidence.reason == "the eval score fell 2 times in a row, from the best 0.7 at step 7 to 0.5 at step 9"


def test_a_trigger_that_a_later_eval_of_the_same_reading_surpassed_stops_nothing() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    for number, score in ((40, 0.7), (50, 0.6), (60, 0.9)):
        world.evaluate(job, "r1", number, score)
    world.tick()
    world.tick()

    assert intents(world) == []
