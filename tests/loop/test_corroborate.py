"""An open server: the owner's own log lifts the ceiling for the stop that it bears out, and for nothing else."""

from dataclasses import replace

import pytest

from evalstopd.core.corroborate import OwnerLog
from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from evalstopd.core.rules import ServerClass
from evalstopd.ports import Span
from evalstopd.report.audit.gather import audit_report
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, said

OPEN = replace(RULES, server=ServerClass.OPEN)


def log(scores: tuple[float, ...]) -> OwnerLog:
    return OwnerLog("trainer_state.json", "a" * 64, {"score": tuple((10 * n, s) for n, s in enumerate(scores, 1))})


def play(world: World, job: str, scores: tuple[float, ...], *, since: int = 1, behind: int = 0) -> None:
    """Play a curve from an eval on; the trainer's log has all evals but the newest so many when the daemon looks."""
    for number, score in list(enumerate(scores, 1))[since - 1 :]:
        world.evaluate(job, "r1", number * 10, score)
        world.keeper.logs["/home/alice/out-r1"] = log(scores[: number - behind])
        world.tick()


def test_a_stop_that_the_owners_log_bears_out_is_done_and_the_audit_says_why() -> None:
    world = World(OPEN)
    job = world.train("r1")
    play(world, job, RISE_AND_FALL)
    store = world.store
    assert isinstance(store, MemoryStore)
    row = audit_report(store, Span(0, 1e12), "test").decisions[0]

    assert world.cluster.cancelled == [(job, 0)]
    assert intents(world) == [(job, State.CONFIRMED)]
    assert (row.what, row.rung) == ("stop", "enforce")
    assert row.basis.corroborated.startswith("steps 30 to 50 and the verdict as in the owner's trainer_state.json")
    assert "SHA-256 aaaa" in events(world)[0][1]


def test_the_log_is_asked_for_only_when_a_stop_hangs_on_it() -> None:
    world = World(OPEN)
    play(world, world.train("r1"), HEALTHY)
    assert world.keeper.asked == []

    asking = World(OPEN)
    play(asking, asking.train("r1", comment="evalstop=enforce"), HEALTHY)
    assert asking.keeper.asked == []

    held = World(OPEN)
    play(held, held.train("r1"), RISE_AND_FALL)
    place = held.keeper.asked[0]
    assert len(held.keeper.asked) == 1
    assert (place.uid, place.output_dir, place.metric, place.since_s) == (1001, "/home/alice/out-r1", "score", 1000)


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.WARN])
def test_it_never_lifts_the_sites_own_rung(rung: Rung) -> None:
    world = World(replace(OPEN, rung=rung))
    play(world, world.train("r1"), RISE_AND_FALL)

    assert world.keeper.asked == []
    assert world.cluster.cancelled == []


@pytest.mark.parametrize("word", ["evalstop=warn", "evalstop=keep", "evalstop=observe"])
def test_the_owners_word_goes_before_his_log(word: str) -> None:
    world = World(OPEN)
    play(world, world.train("r1", comment=word), RISE_AND_FALL)

    assert world.keeper.asked == []
    assert world.cluster.cancelled == []


def test_a_log_that_says_otherwise_leaves_a_warning_and_one_line() -> None:
    world = World(OPEN)
    job = world.train("r1")
    world.keeper.logs["/home/alice/out-r1"] = log(HEALTHY)
    world.play(job, "r1", (*RISE_AND_FALL, 0.3, 0.2))

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.WARNED)]
    assert said(world, "not-corroborated") == [
        "only warned of, on an open server: the owner's trainer_state.json does not have the score of step 20"
    ]


def test_without_a_log_the_job_is_warned_of_at_once() -> None:
    world = World(OPEN)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])

    assert intents(world) == [(job, State.WARNED)]
    assert said(world, "not-corroborated") == ["only warned of, on an open server: no training log"]


def test_a_log_that_is_one_eval_behind_is_waited_for_and_the_stop_is_at_the_eval_that_it_has() -> None:
    world = World(OPEN)
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:5], behind=1)
    assert intents(world) == []
    play(world, job, RISE_AND_FALL[:6], since=6, behind=1)
    store = world.store
    assert isinstance(store, MemoryStore)

    assert world.cluster.cancelled == [(job, 0)]
    assert store.intents_of([store.recent(1)[0].key])[0].evidence.trigger_step == 50


def test_a_log_that_never_comes_is_not_waited_for_long() -> None:
    world = World(OPEN)
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:5], behind=1)
    world.tick(700.0)
    world.tick(700.0)

    assert intents(world) == [(job, State.WARNED)]


def test_a_keeper_that_is_down_decides_nothing_until_it_is_back() -> None:
    world = World(OPEN)
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:4])
    world.keeper.down = True
    play(world, job, RISE_AND_FALL[:5], since=5)
    assert intents(world) == []
    world.keeper.down = False
    play(world, job, RISE_AND_FALL[:6], since=6)

    assert world.cluster.cancelled == [(job, 0)]


def test_an_owner_who_writes_warn_during_the_notice_is_heeded() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    job = world.train("r1")
    play(world, job, RISE_AND_FALL)
    assert intents(world) == [(job, State.WARNED)]
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=warn")
    world.tick(200.0)

    assert world.cluster.cancelled == []
    assert ("abandoned", "the job's rung is now warn") in events(world)


def test_an_owner_who_writes_something_else_over_evalstop_enforce_is_told_that_this_is_what_was_lost() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    job = world.train("r1")
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=enforce")
    play(world, job, RISE_AND_FALL)
    assert intents(world) == [(job, State.WARNED)]
    world.cluster.set_comment(job, "mlflow_run=r1 my best run so far")
    world.keeper.down = True
    world.tick(200.0)

    assert world.cluster.cancelled == []
    assert ("abandoned", "the comment no longer says evalstop=enforce: the job's rung is now warn") in events(world)


def test_what_was_said_early_on_the_warn_rung_is_no_notice_for_the_stop() -> None:
    world = World(replace(OPEN, notice_s=100.0))
    job = world.train("r1")
    play(world, job, RISE_AND_FALL[:4])
    assert [each.kind for each in world.notifier.told] == ["early-warning"]
    world.clock.time_s += 500.0
    play(world, job, RISE_AND_FALL[:5], since=5)

    assert world.cluster.cancelled == []
    assert [each.kind for each in world.notifier.told] == ["early-warning", "warning"]


def test_of_steps_that_no_log_can_have_none_is_asked_for_and_the_reason_is_plain() -> None:
    world = World(OPEN)
    job = world.train("r1")
    for number, score in enumerate(RISE_AND_FALL):
        world.evaluate(job, "r1", number - 70, score)
        world.tick()

    assert world.keeper.asked == []
    assert world.cluster.cancelled == []
    (why,) = said(world, "not-corroborated")
    assert "no log of the owner's is asked for: step -" in why
    assert "is below 0; log evals at the training's own steps, which count from 0" in why
