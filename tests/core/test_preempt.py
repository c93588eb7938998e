"""Who yields: only who may, only behind the heir in the ranking, and only where all end sooner in sum."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.model import Job, JobKey, JobView, Life, Phase, Rung
from evalstopd.core.policies import policy
from evalstopd.core.preempt import (
    MOST_TRIES,
    PATIENCE_S,
    RESOURCES,
    WINDOW_S,
    Facts,
    Occupant,
    Preemption,
    PreemptRules,
    PreemptState,
    heir_of,
    left_within,
    make_room,
    settled,
    why_apart,
)

NOW_S = 100_000.0
SRTF = PreemptRules(policy("srtf-est"))
LAS = PreemptRules(policy("las"))
GOOD = Facts(Rung.ENFORCE, saved_s=NOW_S - 60)


def running(number: int = 1, gpus: int = 8, ran_s: float = 7200.0, node: str = "n0", **fields: object) -> Job:
    job = Job(
        "c", str(number), number, 1001, "alice", Phase.RUNNING, "RUNNING", int(NOW_S - ran_s), int(NOW_S - ran_s), 0,
        gpus, "ml", partition="gpu", nodes=(node,),
    )  # fmt: skip
    return replace(job, **fields)  # type: ignore[arg-type]


def waiting(number: int = 9, gpus: int = 8, **fields: object) -> Job:
    job = Job("c", str(number), number, 1002, "bob", Phase.PENDING, "PENDING", int(NOW_S), None, 0, gpus, "ml",
              partition="gpu", priority=1000, reason=RESOURCES)  # fmt: skip
    return replace(job, **fields)  # type: ignore[arg-type]


def view(job: Job, estimate_s: float | None = None, attained_s: float = 0.0) -> JobView:
    ran_s = NOW_S - job.started_s if job.started_s is not None else attained_s
    return JobView(job.job_id, job.submitted_s, job.gpus, "", estimate_s, ran_s, job.started_s is not None)


def occupant(job: Job, left_s: float = 36_000.0, apart: str = "", saved_s: float = NOW_S - 60) -> Occupant:
    seen = view(job)
    key = JobKey("c", job.job_id, job.uid, job.submitted_s)
    return Occupant(key, job, seen._replace(estimate_s=seen.attained_s + left_s), saved_s, apart)


def asked(job: Job, **fields: object) -> Preemption:
    key = JobKey("c", job.job_id, job.uid, job.submitted_s)
    return replace(Preemption(key, job.life, "9", job.gpus, NOW_S, NOW_S - 60, "r", tries=1), **fields)  # type: ignore[arg-type]


def test_a_long_job_yields_to_a_short_one() -> None:
    room = make_room(waiting(), view(waiting(), 600.0), [occupant(running())], SRTF, NOW_S, 4)

    assert room is not None
    assert room.heir == waiting()
    assert [each.job.job_id for each in room.victims] == ["1"]
    assert room.gain_s == 36_000 - 600 - 60
    assert (
        room.reason == "srtf-est: job 9 is taken to need 600 s, these to need 36000 s; in sum they end 35340 s sooner"
    )


@pytest.mark.parametrize(
    ("left_s", "needs_s", "yields"),
    [(600.0, 600.0, False), (500.0, 600.0, False), (661.0, 600.0, True), (660.0, 600.0, False), (181.0, 1.0, True),
     (179.0, 1.0, False)],
)  # fmt: skip
def test_the_delay_of_two_minutes_and_the_work_done_anew_are_reckoned_with(
    left_s: float, needs_s: float, yields: bool
) -> None:
    """A checkpoint a minute old: a minute is done anew; a victim waits for two minutes at least."""
    found = make_room(waiting(), view(waiting(), needs_s), [occupant(running(), left_s)], SRTF, NOW_S, 4)

    assert (found is not None) is yields


@pytest.mark.properties
@given(
    needs_s=st.floats(1.0, 1e5),
    cost_s=st.floats(0.0, 1e4),
    victims=st.lists(st.tuples(st.floats(1.0, 1e6), st.floats(0.0, 1e4)), min_size=1, max_size=4),
)
def test_who_yields_shortens_the_sum_of_completion_times(
    needs_s: float, cost_s: float, victims: list[tuple[float, float]]
) -> None:
    """Against the two schedules played out: the heir after the last of them, or first and they after it."""
    rules = replace(SRTF, cost_s=cost_s)
    gpus = 8 // len(victims)
    heir = waiting(gpus=gpus * len(victims))
    taken = [
        occupant(running(n, gpus), left_s, saved_s=NOW_S - lost_s) for n, (left_s, lost_s) in enumerate(victims, 1)
    ]
    found = make_room(heir, view(heir, needs_s), taken, rules, NOW_S, 4)
    left = [max(each.view.estimate_s - each.view.attained_s, 0.02 * each.view.estimate_s) for each in taken]  # type: ignore[operator]
    lost = [lost_s for _, lost_s in victims]
    without = sum(left) + max(left) + needs_s
    begin_s = max(needs_s, cost_s)
    yielding = needs_s + sum(begin_s + again + work for again, work in zip(lost, left, strict=True))
    if found is not None and len(found.victims) == len(victims):
        assert without - yielding == pytest.approx(found.gain_s, rel=1e-6, abs=1e-3)
        assert found.gain_s > 0
    elif len(victims) == 1 and found is None:
        assert without - yielding <= 1e-3 or left[0] <= needs_s


def test_who_is_ahead_in_the_ranking_never_yields() -> None:
    short, long = occupant(running(1), 300.0), occupant(running(2, node="n1"), 50_000.0)
    room = make_room(waiting(), view(waiting(), 600.0), [short, long], SRTF, NOW_S, 4)

    assert room is not None
    assert [each.job.job_id for each in room.victims] == ["2"]


def test_several_on_one_node_yield_together_but_never_from_several_nodes() -> None:
    """GPUs here and there are no room for one job; too many at once are more than the budget."""
    heir = waiting(gpus=4)
    small = [occupant(running(n, 2, node=f"n{n % 2}")) for n in range(1, 5)]
    room = make_room(heir, view(heir, 600.0), small, SRTF, NOW_S, 4)

    assert room is not None
    assert len({each.job.nodes for each in room.victims}) == 1
    assert len(room.victims) == 2
    assert make_room(heir, view(heir, 600.0), small, SRTF, NOW_S, 1) is None
    assert make_room(heir, view(heir, 600.0), [small[0], small[1]], SRTF, NOW_S, 4) is None


def test_of_a_node_no_more_yield_than_make_room_and_the_last_of_the_ranking_first() -> None:
    heir = waiting(gpus=4)
    small = [occupant(running(n, 2), 10_000.0 * n) for n in (2, 4, 1, 3)]
    room = make_room(heir, view(heir, 600.0), small, SRTF, NOW_S, 2)

    assert room is not None
    assert [each.job.job_id for each in room.victims] == ["4", "3"]
    assert room.gain_s == 40_000 - 2 * (600 + 60)


def test_of_several_that_would_do_the_one_yields_by_which_all_end_soonest() -> None:
    """Whoever saved last does less anew, however little the ranking parts them."""
    long, fresh = occupant(running(1), 36_000.0), occupant(running(2, node="n1"), 35_990.0, saved_s=NOW_S)
    room = make_room(waiting(), view(waiting(), 600.0), [long, fresh], SRTF, NOW_S, 1)

    assert room is not None
    assert ([each.job.job_id for each in room.victims], room.gain_s) == (["2"], 35_390.0)


@pytest.mark.parametrize(
    "one",
    [
        occupant(running(gpus=4)),
        occupant(running(), apart="for a reason"),
        occupant(running(partition="other")),
    ],
)
def test_without_enough_gpus_of_those_who_may_nobody_yields(one: Occupant) -> None:
    assert make_room(waiting(), view(waiting(), 600.0), [one], SRTF, NOW_S, 4) is None


def test_las_lets_a_job_with_much_service_yield_to_one_without() -> None:
    heir = view(waiting())
    served = occupant(running(ran_s=7200.0))
    fresh = occupant(running(2, ran_s=300.0))
    room = make_room(waiting(), heir, [served, fresh], LAS, NOW_S, 4)

    assert room is not None
    assert [each.job.job_id for each in room.victims] == ["1"]
    assert room.gain_s == 7200 - 120 - 60
    assert make_room(waiting(), heir._replace(attained_s=50_000.0), [served], LAS, NOW_S, 4) is None


def test_a_job_without_an_estimate_is_no_heir_and_yields_to_one_with() -> None:
    endless = replace(occupant(running()), view=view(running()))

    assert make_room(waiting(), view(waiting()), [endless], SRTF, NOW_S, 4) is None
    assert make_room(waiting(), view(waiting(), 600.0), [endless], SRTF, NOW_S, 4) is not None


@pytest.mark.parametrize(
    ("job", "facts", "why"),
    [
        (running(), GOOD, ""),
        (running(gpus=1), replace(GOOD, rung=Rung.WARN), ""),
        (running(ran_s=1800.0), replace(GOOD, saved_s=NOW_S - 900), ""),
        (running(phase=Phase.SUSPENDED), GOOD, "holds no GPUs"),
        (running(gpus=0), GOOD, "holds no GPUs"),
        (running(started_s=None), GOOD, "has run for 0 s only"),
        (running(het_id=3), GOOD, "part of a heterogeneous job"),
        (running(may_requeue=False), GOOD, "may not be requeued"),
        (running(), replace(GOOD, keep=True), "its owner's veto"),
        (running(), replace(GOOD, rung=Rung.OBSERVE), "only observed: no checkpoint of it is kept"),
        (running(), replace(GOOD, stopping=True), "to be stopped"),
        (running(ran_s=1799.0), GOOD, "has run for 1799 s only"),
        (running(), replace(GOOD, saved_s=None), "no fresh verified checkpoint"),
        (running(), replace(GOOD, saved_s=NOW_S - 901), "no fresh verified checkpoint"),
        (running(), replace(GOOD, past=(asked(running(), state=PreemptState.REFUSED),)), "asked for once in this life"),
        (running(), replace(GOOD, past=(asked(running(), state=PreemptState.VOID),)), "asked for once in this life"),
        (
            running(),
            replace(GOOD, past=tuple(asked(running(), life=Life(n, n), state=PreemptState.DONE) for n in (7, 8))),
            "has yielded 2 times",
        ),
    ],
)
def test_who_may_keep_his_gpus(job: Job, facts: Facts, why: str) -> None:
    assert why_apart(job, facts, SRTF, NOW_S) == why


def test_only_who_starts_next_is_an_heir_and_only_once() -> None:
    first, second = waiting(9), waiting(10, priority=900)

    assert heir_of([first, second], [first, second], ()) == first
    assert heir_of([second, first], [first, second], ()) is None
    assert heir_of([replace(first, reason="Priority")], [first], ()) is None
    assert heir_of([replace(first, held=True)], [first], ()) is None
    assert heir_of([first], [first], (asked(running()),)) is None
    assert heir_of([], [second], ()) is None
    assert heir_of([first], [first, waiting(11, priority=1000)], ()) == first, "Slurm has said which of two equals"
    assert heir_of([first], [first, waiting(11, priority=9999, partition="other")], ()) == first


def test_the_hours_budget_counts_what_was_asked_for_but_not_what_was_refused() -> None:
    past = [
        asked(running(1)),
        asked(running(2), state=PreemptState.DONE),
        asked(running(3), state=PreemptState.REFUSED),
        asked(running(4), at_s=NOW_S - WINDOW_S),
    ]

    assert left_within(past, SRTF, NOW_S) == 2
    assert left_within(past * 3, SRTF, NOW_S) == 0


def test_what_became_of_a_request_is_told_by_the_job_alone() -> None:
    job = running()
    one = asked(job)

    assert settled(one, job, NOW_S + 10) == one
    assert settled(one, replace(job, phase=Phase.ENDING), NOW_S + 10) == one
    again = replace(job, restarts=1, submitted_s=job.submitted_s + 5)
    assert settled(one, again, NOW_S) == replace(one, state=PreemptState.DONE)
    for gone in (None, replace(job, uid=5), replace(job, phase=Phase.ENDED)):
        assert settled(one, gone, NOW_S) == one.ended(PreemptState.VOID, "the job has left the queue")
    other = settled(one, replace(job, submitted_s=5), NOW_S)
    assert other == one.ended(PreemptState.VOID, "another job has its id")
    assert settled(one, job, NOW_S + PATIENCE_S) == one
    late = settled(one, job, NOW_S + PATIENCE_S + 1)
    assert (late.state, late.note) == (PreemptState.VOID, "it still ran after 1 requests")
    worn = replace(one, tries=MOST_TRIES)
    assert settled(worn, job, NOW_S).state is PreemptState.VOID
    assert settled(worn, replace(job, phase=Phase.ENDING), NOW_S) == worn
