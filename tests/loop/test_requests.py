"""Requests to end a job that Slurm did not hear, or refused: asked for again, in its time, and nothing untrue said."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from evalstopd.core.intent import Intent, State
from evalstopd.core.model import Phase, Rung, StopAction
from evalstopd.core.rules import Rules
from evalstopd.core.words import asked_in_vain
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.store.memory import MemoryStore
from tests.fakes.overlaid import Overlaid
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks_on

LOST = Unavailable("outcome unknown: scancel failed (1): Socket timed out on send/recv operation")
DENIED = Rejected("scancel was refused: scancel: error: Kill job error on job id 1: Access/permission denied")
TICK_S = 30.0


@dataclass(slots=True)
class Slurm:
    """A world whose Slurm answers requests to end a job with an error, for as long as there is one."""

    world: World
    error: EvalstopError | None
    asked: list[float]
    heard: bool = False

    def tick(self, seconds: float = TICK_S) -> str:
        """Make one pass."""
        ports = self.world.ports()
        cluster = Overlaid(self.world.cluster, cancel=self._cancel, requeue_hold=self._hold)
        return self.world.tick(seconds, replace(ports, cluster=cluster)).summary

    def pass_by(self, seconds: float) -> None:
        """Make passes for so long."""
        for _ in range(int(seconds / TICK_S)):
            self.tick()

    def _cancel(self, job_ids: list[str]) -> None:
        self._answer(self.world.cluster.cancel, job_ids)

    def _hold(self, job_id: str) -> None:
        self._answer(self.world.cluster.requeue_hold, job_id)

    def _answer(self, do: Any, what: Any) -> None:
        self.asked.append(self.world.clock.now_s())
        if self.error is None or self.heard:
            do(what)
        if self.error is not None:
            raise self.error


def due(error: EvalstopError, action: StopAction = StopAction.CANCEL) -> tuple[Slurm, str]:
    """Return a world in which a stop has been asked for once, in vain."""
    world = World(replace(RULES, tick_s=TICK_S, action=action))
    slurm, job = Slurm(world, error, []), world.train("r1")
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(job, "r1", number * 10, score)
        slurm.tick()
    assert len(slurm.asked) == 1
    return slurm, job


def the_intent(slurm: Slurm) -> Intent:
    store = slurm.world.store
    assert isinstance(store, MemoryStore)
    (intent,) = store.intents_of([each.key for each in store.recent(9)])
    return intent


@pytest.mark.parametrize("action", [StopAction.CANCEL, StopAction.REQUEUE_HOLD])
def test_what_slurm_may_not_have_heard_is_asked_for_ever_more_rarely_and_not_given_up(action: StopAction) -> None:
    slurm, job = due(LOST, action)
    slurm.pass_by(3 * 3600.0)
    pauses = [later - one for one, later in zip(slurm.asked, slurm.asked[1:], strict=False)]

    assert pauses[0] == TICK_S
    assert pauses[:4] == sorted(pauses[:4])
    assert all(600.0 <= each <= 900.0 + TICK_S for each in pauses[6:])
    assert [state for _, state in intents(slurm.world)] == [State.PROMOTED]
    assert the_intent(slurm).unsure == len(slurm.asked) > 10
    assert f"asked {len(slurm.asked)} times to end it, and gave no clear answer" in asked_in_vain(the_intent(slurm))
    slurm.error = None
    slurm.pass_by(930.0)

    assert slurm.world.cluster.jobs[job].phase is not Phase.RUNNING
    assert len(slurm.world.cluster.cancelled) + len(slurm.world.cluster.requeued) == 1


def test_between_two_requests_there_is_a_look_and_one_that_was_heard_after_all_is_not_put_again() -> None:
    slurm, job = due(LOST)
    slurm.heard = True
    slurm.tick()
    slurm.pass_by(1800.0)

    assert len(slurm.asked) == 2
    assert slurm.world.cluster.cancelled == [(job, 0)]
    assert intents(slurm.world) == [(job, State.CONFIRMED)]


def test_a_restart_forgets_no_pause() -> None:
    """Each pass of the small world is a new daemon's: what it waits for is in the store."""
    slurm, _ = due(LOST)
    slurm.tick()
    slurm.pass_by(TICK_S)
    asked = len(slurm.asked)
    for _ in range(10):
        slurm.tick(1.0)

    assert len(slurm.asked) == asked


@pytest.mark.parametrize("action", [StopAction.CANCEL, StopAction.REQUEUE_HOLD])
def test_a_refusal_for_lack_of_rights_waits_and_the_admin_is_told_once_what_is_missing(action: StopAction) -> None:
    slurm, job = due(DENIED, action)
    slurm.pass_by(2 * 3600.0)
    told = [each for each in slurm.world.notifier.told if each.for_admin]

    assert 8 <= len(slurm.asked) <= 12
    assert intents(slurm.world) == [(job, State.PROMOTED)]
    assert (the_intent(slurm).cancel_tries, the_intent(slurm).acted_s) == (0, None)
    assert len(told) == 1
    assert told[0].subject == "Slurm lets evalstopd stop no job"
    assert "Access/permission denied; the account that evalstopd runs as needs Slurm's Operator level" in told[0].text
    assert {code for code, _ in remarks_on(slurm.world, "site")} == {"no-right 0", "no-right 0-told"}
    assert asked_in_vain(the_intent(slurm)).startswith("Slurm refuses to end it")
    slurm.error = None
    slurm.pass_by(930.0)

    assert len(slurm.world.cluster.cancelled) + len(slurm.world.cluster.requeued) == 1


def test_a_job_that_its_owner_ends_while_slurm_refuses_us_was_not_stopped_by_us() -> None:
    slurm, job = due(DENIED)
    slurm.world.cluster.finish(job, "CANCELLED")
    slurm.tick()

    assert intents(slurm.world) == [(job, State.ABANDONED)]
    assert the_intent(slurm).note == "the job ended by itself: CANCELLED"


def test_where_one_of_many_is_refused_the_look_tells_which() -> None:
    """One scancel for all: some may have been ended although it was refused."""
    world = World(replace(RULES, tick_s=TICK_S))
    slurm = Slurm(world, None, [])
    mine, other = world.train("r1", gpus=1), world.train("r2", uid=1002, gpus=1)
    world.cluster.submit(1003, 60)
    cancel = world.cluster.cancel

    def refuse_one(job_ids: list[str]) -> None:
        cancel([each for each in job_ids if each != other])
        raise DENIED

    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(mine, "r1", number * 10, score)
        world.evaluate(other, "r2", number * 10, score)
        world.clock.time_s += TICK_S
        world.tick(0.0, replace(world.ports(), cluster=Overlaid(world.cluster, cancel=refuse_one)))
    slurm.error = DENIED
    slurm.tick()

    assert dict(intents(world)) == {mine: State.CONFIRMED, other: State.PROMOTED}
    assert [kind for kind, _ in events(world)].count("cancel-refused") == 1


def test_what_slurm_took_and_did_not_do_is_given_up_after_five_and_decided_anew_by_a_later_fall() -> None:
    slurm, job = due(LOST)
    slurm.error, slurm.world.cluster.deaf = None, True
    slurm.pass_by(2 * 3600.0)
    assert len(slurm.world.cluster.cancelled) == 5
    assert intents(slurm.world) == [(job, State.ABANDONED)]
    assert the_intent(slurm).note == "still running after 5 cancels"
    assert [each[: each.index(";")] for each in given_up(slurm.world)] == [
        "job 1 is not stopped after all, and goes on: still running after 5 cancels"
    ]
    slurm.world.cluster.deaf = False
    slurm.world.evaluate(job, "r1", 60, 0.4)
    slurm.pass_by(930.0)

    assert len(slurm.world.cluster.cancelled) == 6
    assert set(intents(slurm.world)) == {(job, State.ABANDONED), (job, State.CONFIRMED)}


def given_up(world: World) -> list[str]:
    """Return what owners were told of stops that are given up."""
    return [each.text for each in world.notifier.told if each.kind == "given-up"]


def waiting(rules: Rules = RULES) -> tuple[World, str]:
    """Return a world whose owner was told of a stop, and whose notice runs."""
    world = World(replace(rules, notice_s=600.0))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    return world, job


def test_who_was_told_of_a_stop_is_told_that_it_is_given_up() -> None:
    world, job = waiting()
    world.evaluate(job, "r1", 60, 0.95)
    for _ in range(3):
        world.tick()

    assert intents(world) == [(job, State.ABANDONED)]
    (text,) = given_up(world)
    assert text == (
        "job 1 is not stopped after all, and goes on: a new best score at step 60; "
        "what was said of its stop at step 50 no longer holds, another one would be decided on later evals, and told"
    )
    assert events(world)[-1] == ("told", "the owner was told (given-up)")


def test_whose_job_is_over_is_vetoed_or_was_only_warned_of_needs_not_be_told() -> None:
    world, job = waiting()
    world.cluster.finish(job)
    world.tick()
    vetoed, kept = waiting()
    vetoed.cluster.set_comment(kept, "mlflow_run=r1 evalstop=keep")
    vetoed.tick()
    warned, other = waiting(replace(RULES, rung=Rung.WARN))
    warned.evaluate(other, "r1", 60, 0.95)
    warned.tick()
    silenced, third = waiting()
    silenced.switch.on = True
    silenced.tick()

    assert intents(world) == [(job, State.ABANDONED)]
    assert intents(vetoed) == [(kept, State.VETOED)]
    assert intents(warned) == [(other, State.ABANDONED)]
    assert intents(silenced) == [(third, State.ABANDONED)]
    assert [given_up(each) for each in (world, vetoed, warned, silenced)] == [[], [], [], []]


def test_a_daemon_that_ends_before_it_is_known_whether_the_owner_heard_of_it_says_so() -> None:
    world, job = waiting()
    world.notifier.later = True
    world.evaluate(job, "r1", 60, 0.95)
    world.tick()
    world.notifier.die()
    for _ in range(3):
        world.tick()
    store = world.store
    assert isinstance(store, MemoryStore)
    (intent,) = store.intents_of([each.key for each in store.recent(9)])

    assert (intent.state, intent.telling) == (State.ABANDONED, "given-up")
    assert len(given_up(world)) == 1
