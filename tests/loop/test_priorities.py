"""The order of waiting jobs through the loop: recorded before it is asked for, kept, and taken back."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from evalstopd.core.lineup import PriorityRules
from evalstopd.core.model import Phase
from evalstopd.core.policies import policy
from evalstopd.core.shift import Lever, Shift, ShiftState
from evalstopd.errors import Rejected
from evalstopd.loop import Loop, Stance, TickReport
from evalstopd.ports import Ports
from evalstopd.priorities import Place, places, told_back, told_still_set
from evalstopd.report.render import priority_table, show
from tests.fakes.world import RULES, World
from tests.loop.test_crash import Fuse, Killed, fused

SJF = PriorityRules(policy("sjf-est"), interval_s=10.0)


class Queue:
    """A cluster that a blocker fills, and passes over it."""

    def __init__(self, asked: PriorityRules | None = SJF) -> None:
        self.asked = asked
        self.world = World(gpus=8)
        self.cluster = self.world.cluster
        self.blocker = self.cluster.submit()

    def submit(self, limit_s: int | None = None, priority: int = 1000, **fields: object) -> str:
        return self.cluster.submit(time_limit_s=limit_s, priority=priority, **fields)

    def tick(self, seconds: float = 20.0, ports: Ports | None = None) -> TickReport:
        self.world.clock.time_s += seconds
        return self.loop(ports).tick()

    def loop(self, ports: Ports | None = None) -> Loop:
        return Loop(ports or self.world.ports(), Stance(RULES, "hash", "test", self.asked))

    def shown(self, ports: Ports | None = None) -> dict[str, Place]:
        return {place.job: place for place in places(self.loop(ports).ordering)}

    def restore(self) -> str:
        return told_back(self.loop().ordering)

    @property
    def order(self) -> list[str]:
        waiting = [job for job in self.cluster.jobs.values() if job.phase is Phase.PENDING and not job.held]
        return [job.job_id for job in sorted(waiting, key=lambda job: (-job.priority, job.raw_id))]

    @property
    def nices(self) -> dict[str, int]:
        return {job_id: job.nice for job_id, job in self.cluster.jobs.items()}

    @property
    def shifts(self) -> tuple[Shift, ...]:
        return self.world.store.book(self.cluster.name).shifts

    @property
    def asks(self) -> int:
        return len(self.cluster.steered)


def reversed_queue(asked: PriorityRules | None = SJF) -> tuple[Queue, list[str]]:
    """The shortest job was submitted last; priorities fall with the submit time, as by age."""
    queue = Queue(asked)
    jobs = [queue.submit(limit_s, 5000 - 100 * at) for at, limit_s in enumerate((4000, 3000, 2000, 1000))]
    return queue, jobs


def test_the_policys_order_is_reached_and_the_multiset_kept() -> None:
    queue, jobs = reversed_queue()
    before = sorted(queue.cluster.jobs[job].priority for job in jobs)
    report = queue.tick()

    assert queue.order == jobs[::-1]
    assert sorted(queue.cluster.jobs[job].priority for job in jobs) == before
    assert report.counts["moved"] == 4


def test_a_pass_in_order_asks_for_nothing_however_old_the_jobs_get() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    calls = len(queue.cluster.calls)
    for _ in range(5):
        queue.cluster.age(7)
        queue.tick()

    assert queue.asks == 1
    assert queue.cluster.calls[calls:] == ["queue"] * 5
    assert queue.order == jobs[::-1]


def test_the_freed_gpus_go_to_the_job_that_the_policy_names() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    queue.cluster.finish(queue.blocker)

    assert queue.cluster.jobs[jobs[3]].phase is Phase.RUNNING


def test_no_two_orderings_are_closer_together_than_the_interval() -> None:
    queue, _ = reversed_queue()
    queue.tick()
    latest = queue.submit(10, 100)
    queue.tick(5.0)
    assert queue.asks == 1
    queue.tick(5.0)

    assert queue.asks == 2
    assert queue.order[0] == latest


def test_at_the_end_every_nice_is_as_it_was_found() -> None:
    queue, _ = reversed_queue()
    own = queue.submit(3000, 4000, nice=30)
    found = queue.nices
    queue.tick()
    assert queue.nices != found
    assert queue.nices[own] == 30
    said = queue.restore()

    assert queue.nices == found
    assert queue.shifts == ()
    assert said == "4 waiting jobs were given back what they had"


def test_switched_off_it_is_taken_back_by_the_next_pass_and_nothing_is_asked_for_after() -> None:
    queue, jobs = reversed_queue()
    found = queue.nices
    queue.tick()
    queue.asked = None
    for _ in range(4):
        queue.tick()

    assert queue.nices == found
    assert queue.order == jobs
    assert queue.shifts == ()
    assert queue.asks == 2


def test_who_is_governed_no_more_is_given_back_what_he_had() -> None:
    queue, jobs = reversed_queue(replace(SJF, partitions=("gpu",)))
    queue.tick()
    queue.cluster.jobs[jobs[0]] = replace(queue.cluster.jobs[jobs[0]], partition="other")
    queue.tick()

    assert queue.nices[jobs[0]] == 0
    assert [job for job in queue.order if job != jobs[0]] == jobs[:0:-1]


def set_on(queue: Queue, job: str, **fields: object) -> None:
    queue.cluster.jobs[job] = replace(queue.cluster.jobs[job], **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("old", "new"), [(Lever.NICE, Lever.PRIORITY), (Lever.PRIORITY, Lever.NICE)])
def test_after_a_change_of_the_lever_what_the_old_one_set_is_given_back_first(old: Lever, new: Lever) -> None:
    queue, jobs = reversed_queue(replace(SJF, lever=old))
    queue.tick()
    queue.asked = replace(SJF, lever=new)
    jobs.append(queue.submit(10, 100))
    queue.tick(1.0)
    assert queue.order == jobs
    assert set(queue.nices.values()) == {0}
    assert queue.cluster.fixed_priority == set()
    queue.tick()

    assert queue.order == jobs[::-1]
    assert {each.lever for each in queue.shifts} == {new}
    assert queue.cluster.fixed_priority == (set(jobs) if new is Lever.PRIORITY else set()) - {jobs[2]}
    assert [each.tries for each in queue.shifts if each.tries] == []
    queue.restore()
    assert queue.order == jobs
    assert set(queue.nices.values()) == {0}
    assert queue.shifts == ()


def test_without_a_policy_it_is_told_who_still_has_what_was_set() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    queue.asked = None
    rows = queue.shown()
    assert sorted(rows) == jobs
    assert {rows[job].why for job in jobs[:1]} == {"nice 0 -> 300, asked for"}
    assert [rows[job].next for job in jobs] == [5000, 4900, 4800, 4700]
    assert "4 jobs still have what was set: the next pass" in told_still_set(len(rows))
    queue.restore()

    assert queue.shown() == {}
    assert told_still_set(0) == "the order of waiting jobs is Slurm's alone"


def test_times_of_one_day_do_not_look_the_same_in_the_listing(capsys: pytest.CaptureFixture[str]) -> None:
    queue = Queue(replace(SJF, policy=policy("fifo")))
    for at_s in (1_796_040_000, 1_796_040_100):
        queue.submit(10, submitted_s=at_s)
    show(priority_table(list(queue.shown().values())))
    out = capsys.readouterr().out

    assert "1796040000" in out
    assert "1796040100" in out


def test_a_dry_run_counts_the_moves_and_makes_none() -> None:
    queue, jobs = reversed_queue()
    queue.world.clock.time_s += 20
    report, _ = queue.loop().foresee()
    assert (report.counts["would be moved"], queue.asks, queue.shifts) == (4, 0, ())
    assert "4 would be moved" in report.summary
    queue.tick()
    set_on(queue, jobs[3], partition="gpu,other")
    assert queue.loop().foresee()[0].counts["would be moved back"] == 1
    queue.asked = None
    assert queue.loop().foresee()[0].counts["would be moved back"] == 4
    queue.world.switch.on = True
    assert queue.loop().foresee()[0].counts["would be moved back"] == 0
    assert queue.asks == 1


def test_restore_without_the_right_says_one_thing() -> None:
    queue, _ = reversed_queue()
    queue.tick()
    queue.cluster.caller = 4242

    assert queue.restore() == (
        "4 waiting jobs still have what was set; trouble: nothing is given back to waiting jobs, "
        "as it takes Slurm's Operator level: Access/permission denied"
    )


REASONS: tuple[dict[str, object], ...] = (
    {"partition": "gpu,other"},
    {"partition": "other"},
    {"eligible_s": None, "reason": "Dependency"},
    {"eligible_s": 10**9, "reason": "BeginTime"},
    {"held": True, "priority": 0},
    {"het_id": 7},
    {"account": "exempt"},
)


@pytest.mark.parametrize("fields", REASONS)
@pytest.mark.parametrize("lever", list(Lever))
def test_who_leaves_the_line_is_given_back_at_once_what_he_had(fields: dict[str, object], lever: Lever) -> None:
    """No ordering is due yet; a hold is a Priority of its owner's, which stands in place of one of ours."""
    rules = replace(RULES, exempt_accounts=("exempt",))
    queue, jobs = reversed_queue(replace(SJF, lever=lever, partitions=("gpu",)))
    queue.tick()
    set_on(queue, jobs[3], **fields)
    held = "held" in fields
    for _ in range(3):
        queue.world.clock.time_s += 1
        Loop(queue.world.ports(), Stance(rules, priorities=queue.asked)).tick()
    job = queue.cluster.jobs[jobs[3]]

    assert (job.nice, job.priority, job.held) == (0, 0 if held else 4700, held)
    assert (jobs[3] in queue.cluster.fixed_priority) == (held and lever is Lever.PRIORITY)
    back = 0 if held and lever is Lever.PRIORITY else 1
    assert [ask.job_id for asks in queue.cluster.steered[1:] for ask in asks] == [jobs[3]] * back
    queue.tick()
    assert [job for job in queue.order if job != jobs[3]] == [jobs[2], jobs[1], jobs[0]]


def test_a_hold_is_not_ended_by_taking_back_a_priority() -> None:
    queue, jobs = reversed_queue(replace(SJF, lever=Lever.PRIORITY))
    queue.tick()
    set_on(queue, jobs[3], held=True, priority=0)
    said = queue.restore()

    assert (queue.cluster.jobs[jobs[3]].held, queue.cluster.jobs[jobs[3]].priority) == (True, 0)
    assert said == "3 waiting jobs were given back what they had"


def test_what_is_given_back_is_asked_for_until_it_is_seen() -> None:
    queue, jobs = reversed_queue(replace(SJF, reassert=1))
    queue.tick()
    set_on(queue, jobs[3], partition="gpu,other")
    queue.cluster.deaf = True
    for _ in range(4):
        queue.tick(1.0)
    queue.cluster.deaf = False
    queue.tick(1.0)

    assert queue.nices[jobs[3]] == 0
    assert [each.tries for each in queue.shifts if each.key.job_id == jobs[3]] == [0]


@pytest.mark.parametrize("nice", [900, 100_000, -500])
def test_a_job_with_a_nice_of_its_own_neither_lends_nor_takes_a_place(nice: int) -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    before = {job: (queue.cluster.jobs[job].priority, queue.nices[job]) for job in jobs}
    own = queue.submit(1, max(1, 4750 - nice), nice=nice)
    for _ in range(3):
        queue.tick()

    assert {job: (queue.cluster.jobs[job].priority, queue.nices[job]) for job in jobs} == before
    assert queue.nices[own] == nice
    assert queue.shown()[own].why == "has a Nice of its own"
    assert own not in [each.key.job_id for each in queue.shifts]


def test_a_nice_that_its_owner_sets_later_takes_its_place_from_the_others() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    set_on(queue, jobs[3], nice=100_000, priority=1)
    queue.tick()

    others = jobs[:3]
    assert sorted(queue.cluster.jobs[job].priority for job in others) == [4800, 4900, 5000]
    assert [job for job in queue.order if job in others] == others[::-1]
    assert "set by hand" in queue.shown()[jobs[3]].why


def test_a_job_at_the_floor_is_given_back_what_it_had_and_then_reckoned_anew() -> None:
    """What a low job would have without us has fallen further than Slurm lets it fall."""
    queue, jobs = reversed_queue()
    queue.tick()
    low = queue.cluster.jobs[jobs[0]]
    assert low.nice > 0
    set_on(queue, jobs[0], priority=1)
    assert "lowest priority there is" in queue.shown()[jobs[0]].why
    queue.tick(1.0)

    assert queue.nices[jobs[0]] == 0
    for _ in range(3):
        queue.tick()
        assert queue.order[-1] == jobs[0]
    assert queue.cluster.jobs[jobs[0]].priority > 1


def test_nobody_is_lowered_to_the_floor_itself() -> None:
    queue = Queue()
    long, short = queue.submit(4000, 5000), queue.submit(10, 1)
    for _ in range(3):
        queue.tick()

    assert [queue.cluster.jobs[job].priority for job in (short, long)] == [5000, 2]
    assert queue.asks == 1


def test_a_job_that_ran_meanwhile_is_given_back_what_it_had_once_it_waits_again() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    queue.cluster.finish(queue.blocker)
    queue.restore()
    assert [each.key.job_id for each in queue.shifts] == [jobs[3]]
    queue.world.clock.time_s += 5
    queue.cluster.requeue(jobs[3])
    queue.restore()

    assert queue.nices[jobs[3]] == 0
    assert queue.shifts == ()


@pytest.mark.parametrize("sets", [True, False])
def test_a_job_that_runs_by_then_is_asked_to_have_its_nice_back_once(sets: bool) -> None:
    """Versions of Slurm differ in whether a running job's Nice can be set."""
    queue, jobs = reversed_queue()
    queue.tick()
    queue.cluster.finish(queue.blocker)
    moved = queue.nices[jobs[3]]
    queue.cluster.nice_of_running = sets
    queue.restore()
    asks = queue.asks

    assert moved != 0
    assert queue.nices[jobs[3]] == (0 if sets else moved)
    queue.restore()
    assert queue.asks == asks
    queue.asked = None
    queue.tick()
    assert queue.asks == asks
    queue.cluster.requeue(jobs[3])
    queue.restore()
    assert queue.nices[jobs[3]] == 0
    assert queue.shifts == ()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"held": True, "priority": 0}, "held"),
        ({"eligible_s": None, "reason": "Dependency"}, "may not start yet (Dependency)"),
        ({"eligible_s": 10**9, "reason": "BeginTime"}, "may not start yet (BeginTime)"),
        ({"partition": "gpu,other"}, "asked for several partitions"),
        ({"het_id": 7}, "part of a heterogeneous job"),
    ],
)
def test_who_is_left_alone_and_why(fields: dict[str, object], why: str) -> None:
    queue, jobs = reversed_queue()
    alone = queue.submit(1, **{"priority": 4000, **fields})  # type: ignore[arg-type]
    queue.tick()

    assert queue.cluster.jobs[alone].nice == 0
    assert queue.shown()[alone].why == why
    assert queue.order[:1] == [jobs[3]]


@pytest.mark.parametrize("fields", [{"gpus": 0}, {"account": "exempt"}, {"partition": "cpu"}])
def test_whom_the_site_does_not_govern_nothing_moves(fields: dict[str, object]) -> None:
    queue, jobs = reversed_queue(replace(SJF, partitions=("gpu",)))
    rules = replace(RULES, exempt_accounts=("exempt",))
    other = queue.submit(1, 4750, **fields)
    queue.world.clock.time_s += 20
    Loop(queue.world.ports(), Stance(rules, priorities=queue.asked)).tick()

    assert (queue.cluster.jobs[other].nice, queue.cluster.jobs[other].priority) == (0, 4750)
    assert [job for job in queue.order if job in jobs] == jobs[::-1]
    assert all(ask.job_id != other for asks in queue.cluster.steered for ask in asks)


def test_lines_of_other_partitions_and_qos_are_orders_of_their_own() -> None:
    queue = Queue()
    slow = queue.submit(4000, 5000, qos="high")
    quick = queue.submit(10, 1000, qos="normal")
    queue.tick()

    assert queue.order == [slow, quick]
    assert queue.asks == 0


def test_what_the_owner_resets_is_set_again_a_few_times_then_left_alone_and_said_once() -> None:
    queue, jobs = reversed_queue(replace(SJF, reassert=2))
    said = []
    for _ in range(6):
        said += [text for text in queue.tick().troubles if "left alone" in text]
        queue.cluster.jobs[jobs[0]] = replace(queue.cluster.jobs[jobs[0]], nice=0, priority=5000)
    (left,) = [each for each in queue.shifts if each.state is ShiftState.LEFT]
    remarks = queue.world.store.remarks_of([left.key.text])  # type: ignore[attr-defined]

    assert left.key.job_id == jobs[0]
    assert sum(ask.job_id == jobs[0] for asks in queue.cluster.steered for ask in asks) == 3
    assert len(said) == len(remarks) == 1
    assert "did not stay as it was set 3 times" in remarks[0].text
    assert [job for job in queue.order if job != jobs[0]] == [jobs[3], jobs[2], jobs[1]]


def test_what_an_admin_sets_by_hand_is_left_alone_at_once_and_not_taken_back() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    queue.cluster.jobs[jobs[2]] = replace(queue.cluster.jobs[jobs[2]], nice=-777, priority=9999)
    queue.tick()
    queue.restore()
    queue.tick()

    assert queue.nices[jobs[2]] == -777
    assert "set by hand to -777" in queue.shown()[jobs[2]].why


def test_a_priority_set_by_hand_takes_no_nice_and_is_left_alone_after_a_few_tries() -> None:
    queue, jobs = reversed_queue(replace(SJF, reassert=1))
    queue.cluster.fixed_priority.add(jobs[0])
    for _ in range(5):
        queue.tick()

    assert queue.cluster.jobs[jobs[0]].priority == 5000
    assert "its Priority is fixed" in queue.shown()[jobs[0]].why


def test_without_the_right_one_clear_line_and_no_half_done_order() -> None:
    """Its owner may change his own jobs: the others refuse, so what was done is taken back."""
    queue, jobs = reversed_queue()
    queue.cluster.caller = 1001
    queue.cluster.jobs[jobs[0]] = replace(queue.cluster.jobs[jobs[0]], uid=1002)
    found = queue.nices
    report = queue.tick()

    assert queue.nices == found
    assert [text for text in report.troubles if "Operator" in text] == list(report.troubles)
    assert len(report.troubles) == 1
    queue.tick(5.0)
    assert queue.asks == 2
    queue.tick(20.0)
    assert queue.asks == 4
    assert len(queue.world.store.remarks_of(["site"])) == 1  # type: ignore[attr-defined]


def test_an_array_is_moved_as_one_and_its_running_tasks_stay() -> None:
    queue = Queue()
    long = queue.submit(4000, 5000)
    running = queue.submit(10, 1000, job_id="50_0", phase=Phase.RUNNING, started_s=900)
    waiting = queue.submit(10, 1000, job_id="50_[1-9]")
    queue.tick()

    assert queue.order == [waiting, long]
    assert [ask.job_id for asks in queue.cluster.steered for ask in asks] == [long, "50"]
    assert queue.nices[running] == 0
    queue.restore()
    assert queue.nices[waiting] == 0


def test_tasks_of_one_array_with_different_nice_are_left_alone() -> None:
    queue, _ = reversed_queue()
    queue.submit(1, 1000, job_id="50_[1-9]")
    queue.submit(1, 1000, job_id="50_0", nice=5)
    queue.tick()

    assert queue.shown()["50"].why == "its tasks have different Nice"


def test_a_reused_id_is_another_job() -> None:
    queue, jobs = reversed_queue()
    queue.tick()
    old = queue.cluster.jobs[jobs[0]]
    queue.cluster.jobs[jobs[0]] = replace(old, submitted_s=old.submitted_s + 500, nice=40, priority=7000)
    queue.restore()

    assert queue.nices[jobs[0]] == 40


def test_with_the_kill_switch_set_nothing_is_moved_nor_taken_back() -> None:
    queue, jobs = reversed_queue()
    queue.world.switch.on = True
    queue.tick()
    assert queue.asks == 0
    queue.world.switch.on = False
    queue.tick()
    queue.world.switch.on = True
    moved = queue.nices
    with pytest.raises(Rejected, match="kill switch"):
        queue.restore()

    assert queue.nices == moved
    assert queue.order == jobs[::-1]


@pytest.mark.parametrize("lever", list(Lever))
def test_by_either_lever_the_order_comes_and_goes(lever: Lever) -> None:
    queue, jobs = reversed_queue(replace(SJF, lever=lever))
    jobs.append(queue.submit(10, 1000))
    found = {job: (queue.cluster.jobs[job].priority, queue.nices[job]) for job in jobs}
    for _ in range(3):
        queue.tick()
    assert queue.order == jobs[::-1]
    assert queue.asks == 1
    queue.restore()

    assert {job: (queue.cluster.jobs[job].priority, queue.nices[job]) for job in jobs} == found
    assert queue.cluster.fixed_priority == set()


@pytest.mark.parametrize("spec", ["las", "srtf-est"])
def test_what_a_requeued_job_has_attained_counts(spec: str) -> None:
    queue = Queue(replace(SJF, policy=policy(spec)))
    fresh = queue.submit(3000, 1000)
    again = queue.submit(3000, 2000, restarts=1)
    queue.cluster.ran_s[again] = 2900.0
    queue.tick()

    assert queue.order == ([fresh, again] if spec == "las" else [again, fresh])
    assert queue.cluster.calls.count("served") == 1


def test_loss_aware_ranks_bound_runs_that_ran_and_takes_nobody_further_than_the_gain() -> None:
    asked = replace(SJF, policy=policy("loss-aware"), gain=1, loss_metric="loss")
    queue = Queue(asked)
    world = queue.world
    queue.cluster.finish(queue.blocker)
    falls = {}
    for number, drop in enumerate((0.1, 0.2, 0.9)):
        job = world.train(f"r{number}", gpus=8)
        world.tick()
        for step, value in ((1, 5.0), (2, 5.0 - drop)):
            world.tracker.log(f"r{number}", step, value, key="loss", timestamp_ms=1000 * step)
        world.clock.time_s += 2
        queue.cluster.requeue(job)
        queue.cluster.jobs[job] = replace(queue.cluster.jobs[job], held=True)
        falls[job] = drop
    blocker = queue.submit()
    for at, job in enumerate(falls):
        queue.cluster.jobs[job] = replace(queue.cluster.jobs[job], held=False, priority=3000 - 100 * at)
    queue.tick()
    slow, middle, steep = falls

    assert queue.cluster.jobs[blocker].phase is Phase.RUNNING
    assert queue.order == [middle, steep, slow]
    assert [round(queue.shown()[job].key[1], 6) for job in falls] == [-0.1, -0.2, -0.9]


def killed_at(number: int, *, after: bool) -> Iterator[Queue]:
    """Order, add a job, order, take back: in a process that is killed round one of its effects, then in others."""
    queue, _ = reversed_queue()
    fuse = Fuse(number, after=after)
    try:
        for step in range(3):
            if step == 1:
                queue.submit(10, 100)
            queue.tick(ports=fused(queue.world, fuse))
        told_back(queue.loop(fused(queue.world, fuse)).ordering)
    except Killed:
        yield queue


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 20))
def test_killed_round_any_effect_nothing_is_lost_or_repeated(number: int, after: bool) -> None:
    for queue in killed_at(number, after=after):
        for _ in range(4):
            queue.tick()
        jobs = [job for job in queue.cluster.jobs if job != queue.blocker]
        assert queue.order == jobs[::-1]
        assert [each.state for each in queue.shifts if each.state is ShiftState.LEFT] == []
        queue.restore()
        assert set(queue.nices.values()) == {0}
        assert not any(each.away for each in queue.shifts)
