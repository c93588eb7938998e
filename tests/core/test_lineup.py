"""Lines of waiting jobs, the policy's order in them, and what a look at a moved job tells."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.lineup import (
    AT_THE_FLOOR,
    Known,
    PriorityRules,
    Waiting,
    bounded,
    by_lever,
    is_of,
    limits,
    line_up,
    unit_of,
    waiting_of,
    wanted_key,
)
from evalstopd.core.losses import drop_per_s
from evalstopd.core.model import Job, JobKey, Phase, Point
from evalstopd.core.policies import policy
from evalstopd.core.priorities import Change, Placed
from evalstopd.core.rules import Rules
from evalstopd.core.shift import Lever, Shift, ShiftState, Steer, asked_for, natural, observed, steer, taken_back

KEY = JobKey("c", "7", 1001, 100)
MOVED = Shift(KEY, Lever.NICE, nice=5, natural=1000, asked=-40, before=-40, asked_s=1.0, state=ShiftState.SET)
FIFO = PriorityRules(policy("fifo"))


def job(job_id: str = "7", **changes: object) -> Job:
    raw_id = int(job_id.partition("_")[0])
    made = Job(
        "c", job_id, raw_id, 1001, "alice", Phase.PENDING, "PENDING", 100, None, 0, 8, partition="gpu", priority=1000
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def waiting(job_id: str, submitted_s: int) -> Waiting:
    return Waiting((job(job_id, submitted_s=submitted_s),), None, "")


@pytest.mark.parametrize(("job_id", "unit"), [("7", "7"), ("9_3", "9"), ("9_[1-4%2]", "9")])
def test_an_array_is_one_unit(job_id: str, unit: str) -> None:
    assert unit_of(job(job_id)) == unit


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({}, True),
        ({"submitted_s": 500}, False),
        ({"submitted_s": 500, "restarts": 1}, True),
        ({"job_id": "7_3"}, True),
        ({"job_id": "8", "restarts": 1}, False),
        ({"uid": 1002, "restarts": 1}, False),
        ({"cluster": "d", "restarts": 1}, False),
    ],
)
def test_a_moved_job_is_known_again_in_later_lives_and_never_taken_for_another(
    fields: dict[str, object], same: bool
) -> None:
    """A requeue renews the submit time; a new job under an old id has one of its own."""
    assert is_of(MOVED, job(**fields)) is same


@pytest.mark.parametrize(
    ("spec", "key"), [("sjf-est", (60.0,)), ("srtf-est", (40.0,)), ("fifo", (150.0,)), ("loss-aware", (1.0, -0.5))]
)
def test_what_a_job_is_ranked_by_is_what_is_known_of_it(spec: str, key: tuple[float, ...]) -> None:
    known = Known({"7": 60.0}, {"7": 20.0}, {"7": 0.5})

    assert wanted_key(waiting("7", 150), known, replace(FIFO, policy=policy(spec)), 200.0) == key


def test_a_job_that_never_ran_has_all_of_its_work_before_it() -> None:
    srtf = replace(FIFO, policy=policy("srtf-est"))
    assert wanted_key(waiting("7", 150), Known({"7": 60.0}, {}, {}), srtf, 200.0) == (60.0,)


def test_equal_submit_times_go_by_number_and_not_by_spelling() -> None:
    found = waiting_of([job("10"), job("9")], (), Rules(), FIFO, 200.0)
    (line,) = line_up(found, [], Known({}, {}, {}), FIFO, 200.0)
    assert [each.name for each in line.wanted] == ["9", "10"]


def test_estimates_are_the_time_limits_and_who_has_none_is_left_out() -> None:
    units = [Waiting((job("7", time_limit_s=60),), None, ""), Waiting((job("8"),), None, "")]
    assert limits(units) == {"7": 60.0}


def test_all_lines_together_have_no_more_changes_than_are_allowed() -> None:
    jobs = [job(str(n), partition=p, submitted_s=1000 - n, priority=1000 - n) for n, p in enumerate("aabbcc" * 4, 1)]
    asked = replace(FIFO, most=5)
    made = line_up(waiting_of(jobs, (), Rules(), asked, 2000.0), jobs, Known({}, {}, {}), asked, 2000.0)
    assert 0 < sum(len(line.changes) for line in made) <= 5


POLICIES = st.sampled_from(["fifo", "sjf-est", "srtf-est", "las", "las:first=60,second=300", "loss-aware"])
SPECS = st.tuples(st.integers(1, 900), st.integers(0, 50), st.integers(0, 900))


@st.composite
def lines(draw: st.DrawFn) -> tuple[PriorityRules, list[Job], Known]:
    """A policy, and jobs whose priorities differ, so little that none may stay off its target."""
    asked = replace(FIFO, policy=policy(draw(POLICIES)), most=10_000, gain=draw(st.none() | st.integers(1, 5)))
    natural = draw(st.lists(st.integers(1000, 1049), min_size=1, max_size=20, unique=True))
    specs = [draw(SPECS) for _ in natural]
    jobs = [
        job(str(number), priority=each, time_limit_s=limit_s, submitted_s=100 + at_s)
        for number, (each, (limit_s, at_s, _)) in enumerate(zip(natural, specs, strict=True), 1)
    ]
    attained = {each.job_id: float(spec[2]) for each, spec in zip(jobs, specs, strict=True)}
    lengths = {each.job_id: float(each.time_limit_s or 0) for each in jobs}
    falls = {each.job_id: spec[0] / 9 for each, spec in zip(jobs, specs, strict=True)}
    return asked, jobs, Known(lengths, attained, falls)


def wanted(asked: PriorityRules, jobs: list[Job], known: Known) -> dict[str, int]:
    """Return what each job in a line is to have."""
    found = waiting_of(jobs, (), Rules(), asked, 2000.0)
    made = line_up(found, jobs, known, asked, 2000.0)
    to = {change.job.name: change.priority for line in made for change in line.changes}
    return {each.name: to.get(each.name, each.job.priority) for line in made for each in line.wanted}


@given(lines())
def test_the_jobs_in_a_line_share_what_they_would_have_without_us(line: tuple[PriorityRules, list[Job], Known]) -> None:
    assert sorted(wanted(*line).values()) == sorted(each.priority for each in line[1])


@given(lines(), st.integers(-(10**6), 10**6).filter(bool), st.integers(1, 900), st.integers(1, 10**6))
def test_a_job_with_a_nice_of_its_own_changes_nothing_for_anybody(
    line: tuple[PriorityRules, list[Job], Known], nice: int, limit_s: int, priority: int
) -> None:
    asked, jobs, known = line
    own = job("99", nice=nice, time_limit_s=limit_s, priority=priority, submitted_s=99)
    assert wanted(asked, [*jobs, own], known) == wanted(asked, jobs, known)


@pytest.mark.parametrize(
    ("fields", "shift", "why"),
    [
        ({"nice": 900}, None, "has a Nice of its own"),
        ({"nice": -900}, None, "has a Nice of its own"),
        ({"nice": -40}, replace(MOVED, nice=0), ""),
        ({"nice": -40}, MOVED, "has a Nice of its own"),
        ({"nice": 900}, replace(MOVED, nice=0, asked=0, before=0), "has a Nice of its own"),
        ({"nice": 900, "priority": 1}, replace(MOVED, nice=0, asked=900), AT_THE_FLOOR),
        ({"nice": 900, "priority": 2}, replace(MOVED, nice=0, asked=900), ""),
        ({"priority": 1}, None, ""),
    ],
)
def test_whose_priority_tells_what_it_would_be_without_us(
    fields: dict[str, object], shift: Shift | None, why: str
) -> None:
    (found,) = waiting_of([job(**fields)], [shift] if shift else [], Rules(), FIFO, 2000.0)
    assert found.apart == why


LEFT = replace(MOVED, nice=0, state=ShiftState.LEFT, why="its owner wants it so")


@pytest.mark.parametrize(
    ("fields", "shift", "why"),
    [
        ({"nice": -40}, LEFT, "its owner wants it so"),
        ({"het_id": 3}, None, "part of a heterogeneous job"),
        ({"partition": "gpu,other"}, None, "asked for several partitions"),
        ({"held": True}, None, "held"),
        ({"eligible_s": 2001}, None, "may not start yet (no reason given)"),
        ({"eligible_s": None, "reason": "Dependency"}, None, "may not start yet (Dependency)"),
        ({"eligible_s": 2000}, None, ""),
        ({"nice": 1, "priority": 1}, replace(MOVED, nice=0, asked=1), AT_THE_FLOOR),
        ({"nice": 0, "priority": 1}, replace(MOVED, nice=0), ""),
    ],
)
def test_who_is_left_alone_is_told_why(fields: dict[str, object], shift: Shift | None, why: str) -> None:
    (found,) = waiting_of([job(**fields)], [shift] if shift else [], Rules(), FIFO, 2000.0)
    assert found.apart == why


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({}, ""),
        ({"nice": 3}, "its tasks have different Nice"),
        ({"held": True}, "held"),
        ({"het_id": 3}, "part of a heterogeneous job"),
        ({"eligible_s": None}, "may not start yet (no reason given)"),
    ],
)
def test_an_array_is_left_alone_for_any_of_its_tasks(second: dict[str, object], why: str) -> None:
    tasks = [job("7_1", submitted_s=300), job("7_2", **second)]
    (found,) = waiting_of(tasks, [], Rules(), FIFO, 2000.0)
    assert (found.name, found.apart, found.key) == ("7", why, JobKey("c", "7", 1001, 100))


@pytest.mark.parametrize(
    ("fields", "meant"),
    [
        ({}, True),
        ({"gpus": 1}, True),
        ({"gpus": 0}, False),
        ({"account": "exempt"}, False),
        ({"phase": Phase.RUNNING}, False),
        ({"partition": "other"}, False),
        ({"partition": "other,gpu"}, True),
        ({"partition": "other,more"}, False),
    ],
)
def test_whose_order_is_kept(fields: dict[str, object], meant: bool) -> None:
    governed = Rules(partitions=("gpu", "big"), exempt_accounts=("exempt",))
    asked = replace(FIFO, partitions=("gpu",))

    assert bool(waiting_of([job(**fields)], [], governed, asked, 2000.0)) is meant
    assert bool(waiting_of([job(**fields)], [], governed, FIFO, 2000.0)) is meant, "all that are governed"


def test_the_order_is_kept_in_fewer_partitions_than_are_governed_or_in_all() -> None:
    governed = Rules(partitions=("gpu", "big"))

    assert waiting_of([job(partition="big")], [], governed, replace(FIFO, partitions=("gpu",)), 2000.0) == []
    assert len(waiting_of([job(partition="big")], [], Rules(), FIFO, 2000.0)) == 1


def test_a_shift_of_an_earlier_job_under_the_same_id_is_not_this_ones() -> None:
    (found,) = waiting_of([job(submitted_s=500)], [MOVED], Rules(), FIFO, 2000.0)
    assert found.shift is None


def test_each_partition_and_qos_has_a_line_of_its_own() -> None:
    jobs = [job("1", qos="high"), job("2", qos="low"), job("3", partition="big"), job("4", qos="low", held=True)]
    made = line_up(waiting_of(jobs, (), Rules(), FIFO, 2000.0), jobs, Known({}, {}, {}), FIFO, 2000.0)

    assert [(line.partition, line.qos, [each.name for each in line.wanted]) for line in made] == [
        ("big", "", ["3"]),
        ("gpu", "high", ["1"]),
        ("gpu", "low", ["2"]),
    ]


@pytest.mark.parametrize(
    ("other", "lifted"),
    [
        (None, True),
        (job("99", partition="other", priority=10), False),
        (job("99", partition="other", priority=11), True),
        (job("99", partition="other", priority=10, phase=Phase.RUNNING), True),
        (job("99", partition="other", priority=0, held=True), True),
    ],
)
def test_who_is_lifted_is_lifted_over_no_other_waiting_job(other: Job | None, lifted: bool) -> None:
    """One change is allowed: to put 5 before 4 it can rise by one, or else all the others would have to fall."""
    jobs = [job("5", priority=9), job("4", priority=9)] + [job(str(n), priority=5 + n) for n in (3, 2, 1)]
    jobs = [replace(each, submitted_s=100 - int(each.job_id)) for each in jobs]
    asked, queue = replace(FIFO, most=1), [*jobs, *([other] if other else [])]
    (line,) = line_up(waiting_of(jobs, (), Rules(), asked, 2000.0), queue, Known({}, {}, {}), asked, 2000.0)

    assert [each.name for each in line.wanted] == ["5", "4", "3", "2", "1"]
    assert ([(each.job.name, each.priority) for each in line.changes] == [("5", 10)]) is lifted


def test_the_gain_bounds_the_policys_order() -> None:
    jobs = [job(str(n), submitted_s=n, time_limit_s=100 - n) for n in (1, 2, 3, 4)]
    known = Known({each.job_id: float(each.time_limit_s or 0) for each in jobs}, {}, {})

    def order(gain: int | None) -> list[str]:
        asked = replace(FIFO, policy=policy("sjf-est"), gain=gain)
        (line,) = line_up(waiting_of(jobs, (), Rules(), asked, 2000.0), jobs, known, asked, 2000.0)
        return [each.name for each in line.wanted]

    assert (order(None), order(1), order(0)) == (["4", "3", "2", "1"], ["2", "3", "4", "1"], ["1", "2", "3", "4"])


@pytest.mark.parametrize(("lever", "why"), [(Lever.NICE, ""), (Lever.PRIORITY, "its Nice is given back first")])
def test_who_was_moved_by_the_other_lever_waits_until_that_is_given_back(lever: Lever, why: str) -> None:
    found = waiting_of([job(nice=-40)], [replace(MOVED, nice=0)], Rules(), FIFO, 2000.0)
    assert [each.apart for each in by_lever(found, lever)] == [why]


@given(st.permutations(range(8)), st.integers(0, 9))
def test_nobody_gains_more_places_than_allowed_and_the_policy_decides_within(order: list[int], gain: int) -> None:
    ranked = [waiting(str(number + 1), number) for number in order]
    found = [int(each.name) - 1 for each in bounded(ranked, gain)]
    assert sorted(found) == list(range(8))
    assert all(number - place <= gain for place, number in enumerate(found))
    for place in range(8):
        free = [number for number in order if number <= place + gain and number not in found[:place]]
        assert found[place] == free[0]


@pytest.mark.parametrize(
    ("nice", "state", "tries", "words"),
    [
        (-40, ShiftState.SET, 0, ""),
        (5, ShiftState.SET, 1, ""),
        (6, ShiftState.LEFT, 0, "its Nice was set by hand to 6"),
    ],
)
def test_what_a_look_tells(nice: int, state: ShiftState, tries: int, words: str) -> None:
    seen = observed(MOVED, 1000, nice, reassert=2)
    assert (seen.state, seen.tries, seen.why) == (state, tries, words)


def test_what_has_not_arrived_is_not_taken_for_something_set_by_hand() -> None:
    """The process may have ended between the writing and the asking: the value before is ours as well."""
    asked = replace(MOVED, asked=-90, state=ShiftState.ASKED)
    seen = observed(asked, 1000, -40, reassert=2)
    assert (seen.state, seen.asked, seen.tries) == (ShiftState.SET, -40, 1)
    assert seen.away


def test_patience_has_an_end() -> None:
    seen = MOVED
    for _ in range(3):
        seen = observed(replace(seen, asked=-40, before=-40), 1000, 5, reassert=2)
    assert seen.state is ShiftState.LEFT
    assert observed(seen, 1000, -40, reassert=9) == seen
    assert not seen.away


@pytest.mark.parametrize(("nice", "expected"), [(-40, 955), (5, 1000), (15, 1010)])
def test_the_natural_priority_is_reckoned_from_the_nice_there_is(nice: int, expected: int) -> None:
    assert natural(MOVED, 1000, nice) == expected
    assert natural(None, 1000, nice) == natural(replace(MOVED, state=ShiftState.LEFT), 1000, nice) == 1000


def test_a_set_priority_stands_for_the_one_that_was_found() -> None:
    fixed = replace(MOVED, lever=Lever.PRIORITY, asked=1500, before=1400)
    assert [natural(fixed, each, 0) for each in (1500, 1400, 1234)] == [1000, 1000, 1234]


def test_what_is_asked_for_and_taken_back() -> None:
    change = Change(Placed("7", 7, 1000, 1000), 1030)
    first = asked_for(change, KEY, 5, Lever.NICE, 9.0, None)
    assert (first.asked, first.before, first.home, steer(first)) == (-25, 5, 5, Steer("7", nice=-25))
    assert steer(taken_back(first, 10.0)) == Steer("7", nice=5)
    fixed = asked_for(change, KEY, 5, Lever.PRIORITY, 9.0, None)
    assert (fixed.asked, fixed.home, steer(fixed)) == (1030, 1000, Steer("7", priority=1030))
    assert steer(taken_back(fixed, 10.0)) == Steer("7", nice=5, anew=True)


def losses(*points: tuple[int, float, int]) -> list[Point]:
    return [Point("r", step, value, at_ms) for step, value, at_ms in points]


@pytest.mark.parametrize(
    ("points", "drop"),
    [
        ([], None),
        ([(1, 5.0, 0)], None),
        ([(1, 5.0, 0), (2, 4.0, 2000)], 0.5),
        ([(2, 4.0, 2000), (1, 5.0, 0)], 0.5),
        ([(1, 9.0, 0), (2, 5.0, 1000), (3, 4.0, 3000)], 0.5),
        ([(1, 5.0, 0), (2, float("nan"), 1000), (3, float("-inf"), 2000), (4, 3.0, 4000)], 0.5),
        ([(1, 5.0, 0), (2, 4.75, 500)], 0.5),
        ([(1, 5.0, 1000), (2, 4.0, 1000)], None),
        ([(1, 5.0, 2000), (2, 4.0, 1000)], None),
        ([(1, 1e308, 0), (2, -1e308, 1)], None),
    ],
)
def test_the_last_fall_of_a_loss_is_a_number_or_nothing(
    points: list[tuple[int, float, int]], drop: float | None
) -> None:
    assert drop_per_s(losses(*points)) == drop
