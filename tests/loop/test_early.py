"""The early warning in the loop: told once, recorded first, and no act sooner than the notice from it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from evalstopd.core.intent import State
from evalstopd.core.model import JobKey
from evalstopd.core.watch import Remark, Watch
from evalstopd.loop import Loop, Stance
from evalstopd.loop.telling import tell_admin
from evalstopd.ports import Message, Receipt
from evalstopd.report.render import explanation
from evalstopd.report.rows import explain, status_rows
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, FakeNotifier, World
from tests.loop.test_crash import Killed
from tests.loop.told import events, intents

NEAR = RISE_AND_FALL[:4]
NOTICE = replace(RULES, notice_s=2.5)


def archive(world: World) -> MemoryStore:
    assert isinstance(world.store, MemoryStore)
    return world.store


def watch(world: World) -> Watch:
    return archive(world).recent(1)[0]


def kinds(world: World) -> list[str]:
    return [message.kind for message in world.notifier.told]


def shown(world: World, job: str) -> str:
    found = explain(archive(world), archive(world), job)
    assert found is not None
    console = Console(width=400, highlight=False)
    with console.capture() as capture:
        console.print(explanation(found), markup=False)
    return capture.get()


def codes(world: World) -> list[str]:
    return [each.code for each in archive(world).remarks_of([watch(world).key.text])][::-1]


def test_the_owner_is_told_one_step_before_the_stop_and_not_again_at_it() -> None:
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", NEAR)
    assert kinds(world) == ["early-warning"]
    assert "declining 1 of 2" in world.notifier.told[0].text
    assert "evalstopd keep 1" in world.notifier.told[0].text
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    world.tick()

    assert kinds(world) == ["early-warning"]
    said = "the owner was told 1 s before the decision, by the early warning; not before 2 seconds from the decision"
    assert events(world)[-1] == ("warned", said)


def test_the_notice_runs_from_the_early_warning() -> None:
    """Told at 1004, decided at 1005, a notice of 2.5 seconds: nothing before 1006.5."""
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.tick(1.0)
    assert world.cluster.cancelled == []
    world.tick(0.5)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_decision_after_the_notice_of_the_warning_is_done_at_once() -> None:
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", NEAR)
    world.tick(10.0)
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    world.tick()

    assert world.cluster.cancelled == [(job, 0)]


@pytest.mark.parametrize(("broken", "later"), [("no route", False), ("no route", True)])
def test_a_warning_that_could_not_be_sent_is_no_notice_and_the_decision_is_told(broken: str, later: bool) -> None:
    """Decided at 1006: nothing before 1008.5, though the warning was decided at 1004."""
    world = World(NOTICE)
    world.notifier.broken, world.notifier.later = broken, later
    job = world.train("r1")
    world.play(job, "r1", NEAR)
    world.tick()
    world.notifier.broken = ""
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    world.tick()
    assert kinds(world) == ["warning"]
    assert codes(world) == ["early-warning", "early-warning-not-told"]
    world.tick(2.0)
    assert world.cluster.cancelled == []
    world.tick(0.5)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_stop_without_a_step_before_it_is_told_at_the_decision() -> None:
    world = World(replace(NOTICE, rule="k-declines:k=1"))
    job = world.train("r1")
    world.play(job, "r1", NEAR)

    assert kinds(world) == ["warning"]
    assert world.cluster.cancelled == []


def test_where_one_reading_brings_the_warning_and_the_stop_only_the_stop_is_told() -> None:
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    for step, score in ((40, 0.7), (50, 0.6)):
        world.evaluate(job, "r1", step, score)
    world.tick()

    assert kinds(world) == ["warning"]
    assert intents(world) == [(job, State.WARNED)]


def test_a_decline_that_is_over_when_it_is_read_is_told_to_nobody() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    for step, score in ((40, 0.7), (50, 0.75)):
        world.evaluate(job, "r1", step, score)
    world.tick()

    assert kinds(world) == []


def test_a_new_best_withdraws_the_warning_and_the_stop_after_it_has_its_whole_notice() -> None:
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", (*NEAR, 0.9, 0.85, 0.8))

    assert kinds(world) == ["early-warning", "warning"]
    world.tick(2.0)
    assert world.cluster.cancelled == []
    world.tick(0.5)
    assert world.cluster.cancelled == [(job, 0)]


def test_a_warning_is_the_notice_of_one_stop_and_a_second_is_told_anew() -> None:
    """The kill switch ends the first stop; the second, on the same decline, has its own notice."""
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.switch.on = True
    world.tick()
    world.switch.on = False
    world.evaluate(job, "r1", 60, RISE_AND_FALL[5])
    world.tick(60.0)

    assert [state for _, state in intents(world)] == [State.WARNED, State.ABANDONED]
    assert kinds(world) == ["early-warning", "warning"]
    assert world.cluster.cancelled == []


def test_the_next_life_is_warned_anew() -> None:
    world = World(NOTICE)
    job = world.train("r1")
    world.play(job, "r1", NEAR)
    world.cluster.requeue(job)
    world.cluster.start()
    world.tick()
    world.evaluate(job, "r1", 50, 0.75)
    world.tick()
    world.evaluate(job, "r1", 60, 0.7)
    world.tick()

    assert kinds(world) == ["early-warning", "early-warning"]
    assert codes(world) == ["early-warning", "early-warning-told"] * 2
    assert world.cluster.cancelled == []


@pytest.mark.parametrize("comment", ["evalstop=keep", "evalstop=observe", "evalstop=off"])
def test_who_said_no_is_not_warned(comment: str) -> None:
    world = World()
    job = world.train("r1", comment=comment)
    world.play(job, "r1", NEAR)

    assert kinds(world) == []


def test_on_the_warn_rung_it_says_that_nothing_will_be_done_and_enforce_asks_for_a_notice_of_its_own() -> None:
    world = World(NOTICE)
    job = world.train("r1", comment="evalstop=warn")
    world.play(job, "r1", NEAR)
    assert "nothing will be done" in world.notifier.told[0].text
    world.cluster.set_comment(job, "mlflow_run=r1")
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    world.tick()

    assert kinds(world) == ["early-warning", "warning"]


def test_the_kill_switch_tells_nobody_before_the_pass_and_within_it() -> None:
    world = World()
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.switch.on = True
    world.evaluate(job, "r1", 40, 0.7)
    world.tick()
    assert watch(world).early is None
    world.switch.on = False
    world.tick(ports=replace(world.ports(), kill_switch=Answers(iter([False, True]))))

    assert kinds(world) == []
    assert "the kill switch is set" in shown(world, job)


class Answers:
    """A kill switch that answers as listed, and stays at the last answer."""

    def __init__(self, answers: Iterator[bool]) -> None:
        self.answers, self.last = answers, False

    def engaged(self) -> bool:
        self.last = next(self.answers, self.last)
        return self.last


class Dying:
    """A notifier in which the process ends, before or after the message has left."""

    def __init__(self, notifier: FakeNotifier, *, after: bool) -> None:
        self._notifier, self._after = notifier, after

    def tell(self, message: Message) -> Receipt | None:
        if self._after:
            self._notifier.tell(message)
        raise Killed

    def receipts(self) -> list[Receipt]:
        return []

    def close(self) -> None:
        raise AssertionError("a process that is killed closes nothing")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_killed_round_the_telling_it_is_told_once_at_most_and_shown_as_unknown(after: bool, later: bool) -> None:
    """The decision that follows is told, and has its whole notice: nobody knows that the owner was warned."""
    world = World(NOTICE)
    world.notifier.later = later
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.evaluate(job, "r1", 40, 0.7)
    with pytest.raises(Killed):
        world.tick(ports=replace(world.ports(), notifier=Dying(world.notifier, after=after)))
    world.notifier.die()
    for _ in range(3):
        world.tick()

    assert kinds(world) == ["early-warning"] * after
    assert "whether the owner was told at step 40, declining 1 of 2 is not known" in shown(world, job)
    assert status_rows(archive(world), world.store, 1)[0].state == "warned early"
    world.evaluate(job, "r1", 50, 0.6)
    world.tick()
    assert kinds(world)[-1] == "warning"
    world.tick(2.0)
    assert world.cluster.cancelled == []


def test_what_became_of_a_message_is_booked_when_it_is_known_and_unknown_until_then() -> None:
    world = World(replace(NOTICE, rule="k-declines:k=1"))
    world.notifier.later = True
    job = world.train("r1")
    world.play(job, "r1", NEAR)
    assert "whether the owner has got the message (warning) is not known" in shown(world, job)
    world.tick()

    assert events(world)[-1] == ("told", "the owner was told (warning)")
    assert "is not known" not in shown(world, job)


def test_closing_the_loop_books_what_was_sent_last() -> None:
    world = World(NOTICE)
    world.notifier.later = True
    job = world.train("r1")
    world.play(job, "r1", NEAR)
    assert "is not known" in shown(world, job)
    Loop(world.ports(), Stance(world.rules)).close()

    assert "early warning: the owner was told at step 40, declining 1 of 2" in shown(world, job)


@pytest.mark.parametrize("closed", [False, True])
def test_what_became_of_a_message_to_the_admin_is_booked_once_beside_those_to_owners(closed: bool) -> None:
    """In the next pass, or at the daemon's end; however many clusters the owners' messages are of."""
    world = World()
    world.notifier.later = True
    assert isinstance(world.store, MemoryStore)
    tell_admin(world.store, world.notifier, (Remark("site", "enforce-override", "a trial", 1.0),), 1.0)
    for cluster in ("a", "b"):
        world.notifier.tell(Message(JobKey(cluster, "7", 1001, 100), "alice", "subject", "text"))
    assert world.store.remarks_of(["site"]) == ()
    if closed:
        Loop(world.ports(), Stance(RULES, "hash", "test")).close()
    else:
        world.tick()
    world.tick()

    (said,) = world.store.remarks_of(["site"])
    assert (said.code, said.text) == ("enforce-override-told", "the admin was told (enforce-override)")
    assert (world.notifier.told[0].whom, world.notifier.told[0].text) == ("the admin", "a trial")
