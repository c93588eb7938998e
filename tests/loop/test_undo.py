"""Stops that can be taken back: what happens to the job, who may do it, what is booked, that it is spared then."""

import subprocess
from dataclasses import replace

import pytest

from evalstopd.core.intent import Intent, State
from evalstopd.core.model import Phase, Rung, StopAction
from evalstopd.core.rules import ActionRule
from evalstopd.errors import Rejected, Unavailable
from evalstopd.loop.ledger import Ledger
from evalstopd.store.memory import MemoryStore
from evalstopd.undo import Caller, Target, Undone, parse_target, tasks_line, undo
from tests.fakes.cluster import FakeCluster
from tests.fakes.world import RISE_AND_FALL, RULES, FakeClock, FakeNotifier, World
from tests.loop.told import credits_of, events, intents, undo_by_owner

REVERSIBLE = replace(RULES, action=StopAction.REQUEUE_HOLD)
ALICE, BOB, OPERATOR = Caller(1001, lambda: False), Caller(1002, lambda: False), Caller(0, lambda: True)


def stopped(world: World, comment: str = "", curve: tuple[float, ...] = RISE_AND_FALL) -> str:
    """Let a job fall until it is stopped."""
    job = world.train("r1", comment=comment)
    world.play(job, "r1", curve)
    world.tick()
    return job


def intent_of(world: World, job: str) -> Intent:
    assert isinstance(world.store, MemoryStore)
    return world.store.intents_of([world.store.find(job)[0].key])[-1]


def test_a_reversible_stop_frees_the_gpus_and_leaves_the_job_held() -> None:
    world = World(REVERSIBLE, gpus=8)
    job = world.train("r1")
    waiting = world.cluster.submit(1002, 8)
    world.play(job, "r1", RISE_AND_FALL)
    intent = intent_of(world, job)

    assert intent.state is State.HELD
    assert (world.cluster.jobs[job].held, world.cluster.jobs[job].phase) == (True, Phase.PENDING)
    assert intent.handed_to == (waiting,)
    assert world.cluster.cancelled == []
    assert world.keeper.best == {"c-1-1000": 30}
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert world.tracker.runs["r1"].tags["evalstop.state"] == "held"
    kinds = [kind for kind, _ in events(world)]
    assert kinds == ["planned", "warned", "promoted", "cancelling", "cancelled", "held", "run", "telling", "told",
                     "handed"]  # fmt: skip


def test_a_held_job_costs_no_call_and_no_read_while_it_waits() -> None:
    world = World(REVERSIBLE)
    stopped(world)
    world.cluster.calls.clear()
    world.tracker.reads.clear()
    for _ in range(5):
        world.tick(3600.0)

    assert world.cluster.calls == ["queue"] * 5
    assert world.tracker.reads == []
    assert intents(world) == [("1", State.HELD)]


def test_undone_by_its_owner_the_job_runs_again_under_a_veto_and_is_never_stopped_again() -> None:
    world = World(REVERSIBLE)
    job = stopped(world, "evalstop_k=2 project=x")
    done = undo_by_owner(world, job)
    world.play(job, "r1", RISE_AND_FALL)
    held = world.cluster.jobs[job]

    assert done.done == "released"
    copy = "copy the kept checkpoint before it is written over, if the script saves in place"
    assert done.lines[-1] == f"its script starts from the top: {copy}"
    assert held.comment == "mlflow_run=r1 evalstop_k=2 project=x evalstop=keep"
    assert (held.phase, held.restarts) == (Phase.RUNNING, 1)
    assert intents(world) == [(job, State.UNDONE)]
    assert world.cluster.requeued == [(job, 0)]


def test_jobs_of_one_partition_are_held_those_of_another_are_cancelled_whatever_is_set_later() -> None:
    long = ActionRule(StopAction.REQUEUE_HOLD, partition="long")
    site = replace(RULES, caps=replace(RULES.caps, gpu_share=1.0))
    world = World(replace(site, actions=(long,)))
    held, cancelled = world.train("r1", partition="long"), world.train("r2")
    for number, score in enumerate(RISE_AND_FALL, 1):
        if number == 3:
            world.rules = replace(site, actions=(ActionRule(StopAction.CANCEL, partition="long"),))
        world.evaluate(held, "r1", number * 10, score)
        world.evaluate(cancelled, "r2", number * 10, score)
        world.tick()

    assert world.cluster.requeued == [(held, 0)]
    assert world.cluster.cancelled == [(cancelled, 0)]


def test_a_script_that_writes_its_comment_anew_does_not_lose_the_veto() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    undo_by_owner(world, job)
    world.cluster.set_comment(job, "mlflow_run=r1")
    for number, score in enumerate((0.5, 0.4, 0.3, 0.2, 0.1), 20):
        world.evaluate(job, "r1", number * 10, score)
        world.tick()
    assert isinstance(world.store, MemoryStore)
    (watch,) = world.store.find(job)

    assert (watch.terms.rung, watch.rung_now) == (Rung.OBSERVE, Rung.OBSERVE)
    assert world.cluster.requeued == [(job, 0)]
    assert intents(world) == [(job, State.UNDONE)]


@pytest.mark.parametrize("started_after_s", [1.0, 1e6])
def test_the_credit_is_the_work_lost_and_does_not_grow_with_the_wait(started_after_s: float) -> None:
    """8 GPUs from the arrival of the kept eval (step 30, at 1003) to the stop (1005)."""
    world = World(REVERSIBLE)
    job = stopped(world)
    world.tick(started_after_s)
    undo_by_owner(world, job)
    for _ in range(3):
        world.tick()
        with pytest.raises(Rejected, match="nothing to undo"):
            undo_by_owner(world, job)
    (credit,) = credits_of(world)

    assert credit.gpu_hours == pytest.approx(8 * (1005 - 1003) / 3600)
    assert (credit.user, credit.account, credit.key.job_id) == ("alice", "ml", job)


def test_a_release_by_hand_is_an_undo_too() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    world.cluster.release(job)
    world.tick()

    assert intents(world) == [(job, State.UNDONE)]
    assert len(credits_of(world)) == 1


def test_a_job_released_and_over_while_the_daemon_was_away_was_undone() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    undo_by_owner(world, job)
    world.cluster.finish(job, "COMPLETED")
    world.tick()

    assert intents(world) == [(job, State.UNDONE)]
    assert len(credits_of(world)) == 1


def test_a_held_job_that_its_owner_cancels_is_stopped_for_good() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    world.cluster.finish(job, "CANCELLED")
    world.tick()

    assert intents(world) == [(job, State.CONFIRMED)]
    assert credits_of(world) == ()


def test_a_job_that_may_not_be_requeued_goes_on_with_one_warning_more() -> None:
    world = World(REVERSIBLE)
    job = world.train("r1")
    world.cluster.fixed.add(job)
    world.play(job, "r1", (*RISE_AND_FALL, 0.3, 0.2, 0.1))

    assert world.cluster.jobs[job].phase is Phase.RUNNING
    assert world.cluster.calls.count("requeue_hold") == 1
    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.WARNED), (job, State.ABANDONED)]
    assert intent_of(world, job).note == "Slurm may not requeue it: --no-requeue"
    assert (intent_of(world, job).cancel_tries, intent_of(world, job).acted_s) == (0, None)
    assert [each.kind for each in world.notifier.told] == ["early-warning", "given-up", "warning"]


def test_a_job_that_may_not_be_requeued_is_cancelled_where_the_site_said_so_beforehand() -> None:
    world = World(replace(RULES, action=StopAction.HOLD_OR_CANCEL))
    job = world.train("r1")
    world.cluster.fixed.add(job)
    world.play(job, "r1", RISE_AND_FALL)
    world.tick()

    assert "or cancelled where Slurm may not requeue it" in world.notifier.told[0].text
    assert intents(world) == [(job, State.CONFIRMED)]
    assert world.cluster.cancelled == [(job, 0)]


@pytest.mark.parametrize("harsher", [StopAction.CANCEL, StopAction.HOLD_OR_CANCEL])
def test_a_harsher_setting_does_not_reach_a_job_that_was_seen_before_it(harsher: StopAction) -> None:
    world = World(REVERSIBLE)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.rules = replace(RULES, action=harsher)
    world.play(job, "r1", RISE_AND_FALL[:0])
    for number, score in enumerate(RISE_AND_FALL[4:], 5):
        world.evaluate(job, "r1", number * 10, score)
        world.tick()
    world.tick()

    assert intents(world) == [(job, State.HELD)]
    assert intent_of(world, job).action is StopAction.REQUEUE_HOLD


def test_the_kill_switch_holds_back_a_requeue_as_it_does_a_cancel() -> None:
    world = World(replace(REVERSIBLE, notice_s=2.0))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    world.switch.on = True
    world.tick(5.0)

    assert world.cluster.requeued == []
    assert intents(world) == [(job, State.ABANDONED)]


def test_keep_before_the_last_look_saves_the_job_from_a_requeue() -> None:
    world = World(replace(REVERSIBLE, notice_s=2.0))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=keep")
    world.tick(5.0)

    assert world.cluster.requeued == []
    assert intents(world) == [(job, State.VETOED)]


class Overtaken(FakeCluster):
    """A cluster where another's requeue always comes before ours."""

    def requeue_hold(self, job_id: str) -> None:
        self.requeue(job_id)
        FakeCluster.requeue_hold(self, job_id)


def test_a_requeue_by_another_just_before_ours_costs_the_next_life_nothing() -> None:
    world = World(REVERSIBLE)
    world.cluster = Overtaken(world.clock.now_s)
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)
    world.cluster.start()
    world.tick()
    world.tick()

    assert world.cluster.requeued == []
    assert world.cluster.jobs[job].phase is Phase.RUNNING
    assert intents(world) == [(job, State.UNDONE)]


def test_a_task_of_an_array_is_held_and_released_by_its_exact_id() -> None:
    world = World(REVERSIBLE)
    job = world.train("r1", job_id="9_3")
    world.play(job, "r1", RISE_AND_FALL)
    world.tick()
    undo_by_owner(world, job)
    world.tick()

    assert world.cluster.requeued == [("9_3", 0)]
    assert intents(world) == [("9_3", State.UNDONE)]


# --- a cancelled job


def test_a_cancelled_job_that_a_later_one_of_its_owner_takes_up_is_undone_once() -> None:
    world = World()
    job = stopped(world)
    assert intents(world) == [(job, State.CONFIRMED)]
    undo_by_owner(world, job)
    again = world.cluster.submit(1001, 8, f"evalstop=keep evalstop_undo={job}")
    for _ in range(3):
        world.tick()
    world.cluster.finish(again)
    world.cluster.submit(1001, 8, f"evalstop=keep evalstop_undo={job}")
    world.tick()

    assert intents(world) == [(job, State.UNDONE)]
    (credit,) = credits_of(world)
    assert credit.gpu_hours == pytest.approx(8 * (1005 - 1003) / 3600)
    assert ("undone", f"job {again} takes up its work; 0.004 GPU-hours credited") in events(world)
    assert world.tracker.runs["r1"].tags["evalstop.state"] == "undone"


def test_a_stranger_who_claims_to_take_up_a_job_books_nothing() -> None:
    world = World()
    job = stopped(world)
    world.cluster.submit(1002, 8, f"evalstop_undo={job}")
    world.tick()

    assert intents(world) == [(job, State.CONFIRMED)]
    assert credits_of(world) == ()


def test_a_job_submitted_before_the_stop_takes_nothing_up() -> None:
    """Else a job that claims beforehand would undo every stop of its owner's."""
    world = World()
    world.cluster.submit(1001, 8, "evalstop_undo=2")
    world.tick(5.0)
    job = stopped(world)
    world.tick()

    assert intents(world) == [(job, State.CONFIRMED)]
    assert credits_of(world) == ()


@pytest.mark.parametrize(
    "words", ["evalstop_undo=99", "evalstop_undo=1;evalstop_undo=x", "evalstop_undo=", "evalstop_undo=1_[0-3]"]
)
def test_words_that_name_no_stopped_job_do_nothing(words: str) -> None:
    world = World()
    job = stopped(world, curve=RISE_AND_FALL)
    world.cluster.submit(1001, 8, words)
    world.tick()

    assert credits_of(world) == ()
    assert intents(world) == [(job, State.CONFIRMED)]


# --- the command, with a store


def by(world: World, caller: Caller, job: str, *, writes: bool = True) -> Undone:
    target = Target(job, intent_of(world, job))
    return undo(world.cluster, target, caller, Ledger(world.store, world.clock) if writes else None)


def test_an_operator_books_the_credit_of_a_cancelled_job_at_once_and_once() -> None:
    world = World()
    job = stopped(world)
    first, again = by(world, OPERATOR, job), by(world, OPERATOR, job)
    world.cluster.submit(1001, 8, f"evalstop_undo={job}")
    world.tick()

    assert (first.done, first.booked, again.done) == ("resume", True, "already")
    assert first.command == (
        f"sbatch --chdir=/home/alice --comment='evalstop=keep evalstop_undo={job}' SCRIPT "
        "--resume_from_checkpoint /pins/c-1-1000/best"
    )
    assert len(credits_of(world)) == 1


@pytest.mark.parametrize("first", [OPERATOR, ALICE])
def test_how_a_cancelled_job_goes_on_is_said_each_time_to_owner_and_operator_alone(first: Caller) -> None:
    world = World()
    job = stopped(world)
    done = by(world, first, job)
    for caller in (ALICE, OPERATOR):
        again = by(world, caller, job)
        assert (again.done, again.command, again.checkpoint) == ("already", done.command, done.checkpoint)
        assert again.lines[0].startswith(f"the stop of job {job} is undone already: undone by ")
        assert f"  {done.command}" in again.lines
    with pytest.raises(Rejected, match="another user's"):
        by(world, BOB, job)


def test_of_a_job_that_was_released_no_command_is_said() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    by(world, ALICE, job)
    world.tick()
    again = by(world, ALICE, job)

    assert (again.done, again.command, again.lines) == ("already", "", (f"the stop of job {job} is undone already",))


def test_the_id_of_an_array_names_its_held_tasks_and_how_each_is_undone() -> None:
    """Tasks that a user holds before their first life are none of ours."""
    cluster = FakeCluster(lambda: 1000.0)
    for task in range(3):
        cluster.submit(job_id=f"28_{task}", held=True, restarts=min(task, 1))
    cluster.submit(job_id="280_1", held=True, restarts=1)
    cluster.submit(job_id="28_9")
    ways = "tasks of array 28 are held, undo each by its own id: evalstopd undo 28_1, evalstopd undo 28_2"

    with pytest.raises(Rejected, match=rf"; {ways}$"):
        undo(cluster, parse_target("28"), ALICE, None)
    assert [job.held for job in cluster.jobs.values()] == [True, True, True, True, False]
    for task in range(3, 24):
        cluster.submit(job_id=f"30_{task}", held=True, restarts=1)
    assert tasks_line(cluster, "30").endswith("evalstopd undo 30_22, and 1 more")
    assert tasks_line(cluster, "29") == ""
    cluster.down = True
    assert tasks_line(cluster, "28") == ""


@pytest.mark.parametrize("later", [False, True])
def test_an_owner_is_told_of_a_stop_that_an_operator_undid_and_booked_once(later: bool) -> None:
    """The daemon tells of what it books itself; here the command line has booked, and the daemon sees it closed."""
    world = World()
    job = stopped(world)
    people = FakeNotifier(later=later)
    for caller in (OPERATOR, OPERATOR):
        undo(world.cluster, Target(job, intent_of(world, job)), caller, Ledger(world.store, FakeClock(2000.0)), people)
    world.tick()
    (message,) = people.told

    assert (message.user, message.kind, message.ref) == ("alice", "undone", intent_of(world, job).id)
    assert "was undone by an operator; " in message.text
    assert "GPU-hours are credited; to go on: sbatch " in message.text
    assert [kind for kind, _ in events(world)][-3:] == ["undone", "telling", "told"]
    assert [each.kind for each in world.notifier.told].count("undone") == 0


def test_an_owner_who_undoes_a_stop_is_not_told_what_he_did() -> None:
    world = World()
    job = stopped(world)
    people = FakeNotifier()
    undo(world.cluster, Target(job, intent_of(world, job)), ALICE, Ledger(world.store, FakeClock(2000.0)), people)

    assert people.told == []
    assert len(credits_of(world)) == 1


class ReadOnly(MemoryStore):
    """A store that its caller may not write."""

    def __init__(self, of: object) -> None:
        self._of = of

    def record(self, changes: object) -> None:
        raise Unavailable("attempt to write a readonly database")


def test_an_owner_who_may_not_write_the_store_gets_the_command_and_the_credit_later() -> None:
    world = World()
    job = stopped(world)
    done = undo(
        world.cluster, Target(job, intent_of(world, job)), ALICE, Ledger(ReadOnly(world.store), FakeClock(2000.0))
    )

    assert (done.done, done.booked) == ("resume", False)
    assert "once the daemon sees that job in the queue" in done.lines[-1]
    assert credits_of(world) == ()


@pytest.mark.parametrize("rules", [RULES, REVERSIBLE])
def test_a_stranger_undoes_nothing(rules: object) -> None:
    """A cancelled job's stop is refused by us, a held one by Slurm: neither comment nor hold are a stranger's."""
    world = World(rules)  # type: ignore[arg-type]
    job = stopped(world)
    before = world.cluster.jobs[job]
    world.cluster.caller = 1002
    with pytest.raises(
        Rejected, match=rf"^job {job} is another user's: only its owner or an operator may undo its stop$"
    ):
        by(world, BOB, job)
    with pytest.raises(Rejected, match="another user's"):
        undo(world.cluster, parse_target(job), BOB, None)
    world.cluster.caller = None
    world.tick()

    assert world.cluster.jobs[job] == before
    assert credits_of(world) == ()


def test_a_comment_that_is_full_does_not_keep_a_job_held() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    world.cluster.full.add(job)
    done = undo_by_owner(world, job)
    world.tick()

    assert "the daemon does not stop an undone job again in any case" in "\n".join(done.lines)
    assert intents(world) == [(job, State.UNDONE)]


def test_an_intents_id_names_the_job_and_no_other_that_has_its_number() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    name = intent_of(world, job).id
    assert name == "c:1:1001:1000:0:50"
    with pytest.raises(Rejected, match="Slurm does not know"):
        undo(world.cluster, parse_target(name.replace("1001", "1002")), ALICE, None)
    with pytest.raises(Rejected, match="Slurm does not know"):
        undo(world.cluster, parse_target(name.replace("c:", "d:")), ALICE, None)

    assert undo(world.cluster, parse_target(name), ALICE, None).done == "released"


def test_what_was_not_stopped_is_not_undone() -> None:
    world = World(replace(REVERSIBLE, notice_s=60.0))
    job = world.train("r1")
    with pytest.raises(Rejected, match="nothing to undo"):
        undo_by_owner(world, job)
    world.play(job, "r1", RISE_AND_FALL)
    with pytest.raises(Rejected, match="evalstopd keep 1 prevents it"):
        by(world, ALICE, job)
    world.cluster.finish(job, "COMPLETED")
    with pytest.raises(Rejected, match="it ended as COMPLETED"):
        undo_by_owner(world, job)
    with pytest.raises(Rejected, match="Slurm does not know job 99"):
        undo_by_owner(world, "99")


def test_a_job_that_another_holds_is_not_released_by_an_intent_that_gave_it_up() -> None:
    """An id that was used again, or a hold of the admin's on a job that was never stopped: no business of an undo."""
    world = World(REVERSIBLE)
    job = stopped(world)
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], uid=1002, user="bob")
    with pytest.raises(Rejected):
        by(world, OPERATOR, job)

    assert world.cluster.jobs[job].held


@pytest.mark.parametrize("state", [State.ABANDONED, State.VETOED])
def test_a_hold_that_is_not_ours_is_not_lifted(state: State) -> None:
    """Not even by an operator: whoever requeued and held it meant it."""
    world = World(replace(REVERSIBLE, notice_s=60.0))
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL)
    world.cluster.requeue_hold(job)
    intent = replace(intent_of(world, job), state=state)
    with pytest.raises(Rejected, match="not held by evalstopd"):
        undo(world.cluster, Target(job, intent), OPERATOR, None)

    assert world.cluster.jobs[job].held


@pytest.mark.parametrize("ended", [False, True])
def test_without_a_store_an_operator_undoes_nothing_of_anothers(ended: bool) -> None:
    """He may release any job, and could not tell an admin's hold, or a user's own cancel, from a stop of ours."""
    world = World()
    job = world.cluster.submit(1001, 8)
    world.cluster.requeue_hold(job)
    if ended:
        world.cluster.finish(job, "CANCELLED")
    before = world.cluster.jobs[job]
    with pytest.raises(Rejected, match="is another user's, and without the store nobody can tell"):
        undo(world.cluster, parse_target(job), OPERATOR, None)

    assert world.cluster.jobs[job] == before


def test_with_a_store_an_operator_releases_what_we_hold() -> None:
    world = World(REVERSIBLE)
    job = stopped(world)

    done = by(world, OPERATOR, job)
    assert done.done == "released"
    assert f"; the kept checkpoint is {done.checkpoint}: copy it before it is written over" in done.lines[-1]


@pytest.mark.parametrize(
    "change",
    [{"cancel_tries": 0, "state": State.WARNED}, {"action": StopAction.CANCEL}],
    ids=["only warned of", "cancelled"],
)
def test_a_hold_that_we_never_asked_for_is_not_lifted(change: dict[str, object]) -> None:
    world = World(REVERSIBLE)
    job = stopped(world)
    intent = replace(intent_of(world, job), held_life=None, **change)  # type: ignore[arg-type]
    with pytest.raises(Rejected):
        undo(world.cluster, Target(job, intent), OPERATOR, None)

    assert world.cluster.jobs[job].held


@pytest.mark.parametrize("full", [False, True])
def test_an_owner_whom_an_admins_hold_stops_is_told_what_to_do_and_what_stands(full: bool) -> None:
    """The admin's release is the undo then, and the veto that is in the comment by then keeps the next life."""
    world = World(REVERSIBLE)
    job = stopped(world)
    world.cluster.admins.add(job)
    world.cluster.full |= {job} if full else set()
    world.cluster.caller = 1001
    with pytest.raises(Rejected) as refused:
        undo_by_owner(world, job)
    world.cluster.caller = None

    assert f"only an admin can lift it: ask for 'scontrol release {job}'" in str(refused.value)
    assert ("evalstop=keep by now, which stands" in str(refused.value)) is not full
    assert ("its comment is as it was" in str(refused.value)) is full
    assert ("evalstop=keep" in world.cluster.jobs[job].comment) is not full
    world.cluster.release(job)
    world.tick()
    assert intents(world) == [(job, State.UNDONE)]


class Lost(FakeCluster):
    """A cluster that does not answer a release."""

    def release(self, job_id: str) -> None:
        raise Unavailable("scontrol release failed")


def test_a_release_without_an_answer_leaves_no_change_unsaid() -> None:
    world = World(REVERSIBLE)
    world.cluster = Lost(world.clock.now_s)
    job = stopped(world)
    with pytest.raises(Unavailable, match=r"scontrol release failed; its comment says evalstop=keep by now.*try again"):
        undo_by_owner(world, job)


HOSTILE_PATHS = [
    "/a b/'x'",
    "/a\nb\x1b[31m;rm -rf $HOME",
    "/`id`$(id)",
    "/ü漢\u202e",
    "/\udcff\x07",
    "/--help",
    "/a\\'b\\n",
]


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_the_command_reads_as_it_is_meant_whatever_the_path_holds(path: str) -> None:
    """A shell takes it for one word, and no character of it acts on the terminal."""
    world = World()
    job = stopped(world)
    intent = replace(intent_of(world, job), kept_path=path)
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], work_dir=path)
    done = undo(world.cluster, Target(job, intent), ALICE, None)
    asked = subprocess.run(
        ["bash", "-c", f"sbatch() {{ printf '%s\\0' \"$@\"; }}; {done.command}"], capture_output=True, check=True
    ).stdout.split(b"\0")[:-1]

    word = path.encode("utf-8", "surrogateescape")
    assert asked == [b"--chdir=" + word, b"--comment=evalstop=keep evalstop_undo=1", b"SCRIPT",
                     b"--resume_from_checkpoint", word]  # fmt: skip
    assert all(line.isprintable() for line in done.lines)
