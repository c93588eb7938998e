"""What comes of a stop whose owner asked for a signal: the job's end on it is the stop, with all that follows one."""

from dataclasses import replace

import pytest

from evalstopd.core.intent import Intent, State
from evalstopd.core.model import StopAction
from evalstopd.errors import Rejected
from evalstopd.report.scorecard.fate import first_decision
from evalstopd.store.memory import MemoryStore
from evalstopd.undo import Caller, Target, undo
from tests.fakes.cluster import FakeCluster
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import credits_of, events, intents, undo_by_owner

WORDS = "evalstop_signal=USR1@20"


class Answering(FakeCluster):
    """A cluster whose scripts end, or are requeued, on a signal; `answer` is how, empty for a signal refused."""

    answer = "COMPLETED"

    def signal(self, job_id: str, name: str) -> None:
        super().signal(job_id, name)
        if not self.answer:
            raise Rejected("Access/permission denied")
        if self.answer == "REQUEUED":
            self.requeue(job_id)
        else:
            self.finish(job_id, self.answer)


def signalled(answer: str, action: StopAction = StopAction.CANCEL) -> tuple[World, str, str]:
    """Let a job fall until it is signalled and answers; another one waits for its GPUs."""
    world = World(replace(RULES, action=action), gpus=8)
    world.cluster = cluster = Answering(world.clock.now_s, gpus=8)
    cluster.answer = answer
    job = world.train("r1", comment=WORDS)
    waiting = world.cluster.submit(1002, 8)
    world.play(job, "r1", RISE_AND_FALL[:5])
    for _ in range(3):
        world.tick()
    return world, job, waiting


def intent_of(world: World) -> Intent:
    assert isinstance(world.store, MemoryStore)
    return world.store.intents_of([watch.key for watch in world.store.recent(100)])[0]


@pytest.mark.parametrize("action", [StopAction.CANCEL, StopAction.REQUEUE_HOLD])
@pytest.mark.parametrize("answer", ["COMPLETED", "FAILED", "CANCELLED"])
def test_an_end_on_our_signal_is_a_stop_with_all_that_follows_one(answer: str, action: StopAction) -> None:
    world, job, waiting = signalled(answer, action)

    assert (world.cluster.signalled, world.cluster.cancelled, world.cluster.requeued) == ([(job, "USR1")], [], [])
    assert intents(world) == [(job, State.CONFIRMED)]
    assert [kind for kind, _ in events(world)] == [
        "planned", "warned", "promoted", "signalled", "cancelled", "confirmed", "run", "telling", "told", "handed",
    ]  # fmt: skip
    assert f"the job ended as {answer} after USR1, as its owner asked" in dict(events(world))["confirmed"]
    assert events(world)[-1] == ("handed", f"its 8 GPUs went to {waiting}")
    assert world.notifier.told[-1].kind == "stopped"
    run = world.tracker.runs["r1"]
    assert (run.status, run.tags["evalstop.state"]) == ("KILLED", "confirmed")


def test_an_end_on_our_signal_is_undone_as_a_cancel_is() -> None:
    world, job, _ = signalled("COMPLETED")
    by_slurm_alone = undo_by_owner(world, job)
    by_store = undo(world.cluster, Target(job, intent_of(world)), Caller(1001, lambda: False), None)
    world.cluster.submit(1001, 8, f"evalstop=keep evalstop_undo={job}")
    world.tick()

    assert by_slurm_alone.done == by_store.done == "resume"
    assert by_store.command.endswith("--resume_from_checkpoint /pins/c-1-1000/best")
    assert intents(world) == [(job, State.UNDONE)]
    assert len(credits_of(world)) == 1


@pytest.mark.parametrize("action", [StopAction.CANCEL, StopAction.REQUEUE_HOLD])
def test_a_script_that_requeues_itself_on_the_signal_was_not_stopped_and_gets_no_credit(action: StopAction) -> None:
    """Lightning does so on USR1."""
    world, job, _ = signalled("REQUEUED", action)

    assert intents(world) == [(job, State.ABANDONED)]
    assert dict(events(world))["abandoned"] == "the job was requeued after the signal, and goes on: REQUEUED"
    assert credits_of(world) == ()
    assert "stopped" not in [message.kind for message in world.notifier.told]


def test_a_job_that_ends_after_its_signal_was_refused_has_ended_by_itself() -> None:
    world, job, _ = signalled("")
    assert intents(world) == [(job, State.SIGNALLED)]
    world.cluster.finish(job)
    world.tick()

    assert dict(events(world))["abandoned"] == "the job ended by itself: COMPLETED"
    assert intents(world) == [(job, State.ABANDONED)]


def test_a_veto_in_the_grace_keeps_the_job_from_the_cancel_and_its_end_out_of_the_evidence() -> None:
    world = World()
    job = world.train("r1", comment=WORDS)
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.cluster.set_comment(job, f"mlflow_run=r1 {WORDS} evalstop=keep")
    for _ in range(3):
        world.tick(30.0)
    decision = first_decision((), [intent_of(world)])

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.VETOED)]
    assert decision is not None
    assert decision.done


@pytest.mark.parametrize("state", [State.PLANNED, State.WARNED, State.PROMOTED, State.VETOED, State.ABANDONED])
def test_only_what_was_acted_on_is_out_of_the_evidence(state: State) -> None:
    """A job that was signalled tells nothing of the rule, whatever the stop came to; one that was only warned does."""
    world, _, _ = signalled("COMPLETED")
    whole = replace(intent_of(world), state=state)
    untouched = replace(whole, acted_s=None)

    assert [each and each.done for each in (first_decision((), [whole]), first_decision((), [untouched]))] == [
        True, False,
    ]  # fmt: skip
