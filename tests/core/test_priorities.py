"""The arrangement of a line: the order is reached, what the jobs hold together is kept, and no change is needless."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.priorities import LOWEST, Change, Placed, arrange, in_place, longest_falling, slack


def placed(number: int, priority: int, natural: int | None = None) -> Placed:
    return Placed(str(number), number, priority, priority if natural is None else natural)


def after(jobs: Sequence[Placed], changes: Sequence[Change]) -> list[Placed]:
    """Return the jobs with the changes made."""
    new = {change.job.name: change.priority for change in changes}
    return [replace(job, priority=new.get(job.name, job.priority)) for job in jobs]


def priorities(jobs: Sequence[Placed]) -> list[int]:
    return sorted(job.priority for job in jobs)


numbers = st.integers(1000, 1300) | st.integers(10_000, 10_010)


@st.composite
def lines(draw: st.DrawFn, most: int = 12) -> list[Placed]:
    """Jobs in a wanted order, as Slurm has them without us."""
    natural = draw(st.lists(numbers, min_size=1, max_size=most))
    return draw(st.permutations([placed(number, each) for number, each in enumerate(natural, 1)]))


@st.composite
def moved_lines(draw: st.DrawFn) -> list[Placed]:
    """The same, some moved before, and aged since."""
    line = draw(lines())
    arranged = after(line, arrange(draw(st.permutations(line))))
    ages = [draw(st.integers(0, 30)) for _ in arranged]
    return draw(
        st.permutations(
            [
                replace(job, priority=job.priority + age, natural=job.natural + age)
                for job, age in zip(arranged, ages, strict=True)
            ]
        )
    )


@given(moved_lines())
def test_the_wanted_order_is_reached_and_then_nothing_is_left_to_do(wanted: list[Placed]) -> None:
    arranged = after(wanted, arrange(wanted))

    assert in_place(arranged) == arranged
    assert arrange(arranged) == ()


@given(moved_lines())
def test_rank_i_has_the_ith_highest_of_the_natural_priorities_but_for_drift_and_ties(wanted: list[Placed]) -> None:
    arranged = after(wanted, arrange(wanted))
    natural = sorted((job.natural for job in wanted), reverse=True)

    for job, target in zip(arranged, natural, strict=True):
        assert job.priority <= target + slack(wanted)
        assert job.priority >= target - slack(wanted) - len(wanted)


@given(lines())
def test_without_ties_the_multiset_is_kept_exactly(wanted: list[Placed]) -> None:
    wanted = [replace(job, priority=10 * job.number, natural=10 * job.number) for job in wanted]

    assert priorities(after(wanted, arrange(wanted))) == priorities(wanted)


@given(st.permutations(range(1, 8)), st.lists(st.integers(0, 60), min_size=7, max_size=7))
def test_no_arrangement_has_fewer_changes(order: list[int], drifts: list[int]) -> None:
    """By brute force: of all sets of jobs that could keep what they have, none is larger than the one that does."""
    wanted = [placed(number, 1000 + 100 * at + drifts[at], 1000 + 100 * at) for at, number in enumerate(order)]
    wanted = sorted(wanted, key=lambda job: order[job.number - 1])

    assert len(arrange(wanted)) == len(wanted) - _most_kept(wanted)


def _most_kept(wanted: Sequence[Placed]) -> int:
    natural = sorted((job.natural for job in wanted), reverse=True)
    targets = _parted(wanted, natural)
    for size in range(len(wanted), -1, -1):
        for kept in combinations(range(len(wanted)), size):
            if _can_be(wanted, kept, targets):
                return size
    return 0


def _parted(wanted: Sequence[Placed], natural: list[int]) -> list[int]:
    found: list[int] = []
    for job, before, target in zip(wanted, [None, *wanted], natural, strict=False):
        step = int(before is not None and job.number < before.number)
        found.append(target if not found else min(target, found[-1] - step))
    return found


def _can_be(wanted: Sequence[Placed], kept: tuple[int, ...], targets: list[int]) -> bool:
    """Tell whether all others can be put within the slack of their targets, in order between those kept."""
    drift = slack(wanted)
    highest = float("inf")
    for rank, job in enumerate(wanted):
        step = int(rank > 0 and job.number < wanted[rank - 1].number)
        top = min(highest - step, targets[rank] + drift)
        if rank in kept:
            if abs(job.priority - targets[rank]) > drift or job.priority > top:
                return False
            top = job.priority
        elif top < targets[rank] - drift:
            return False
        highest = top
    return True


@given(moved_lines(), st.integers(-50, 50))
def test_what_rises_by_age_alone_changes_nothing(wanted: list[Placed], age: int) -> None:
    arranged = after(wanted, arrange(wanted))
    older = [replace(job, priority=job.priority + age, natural=job.natural + age) for job in arranged]

    assert arrange(older) == ()


@given(lines(), st.integers(2, 6))
def test_with_a_limit_no_more_is_changed_and_the_whole_order_comes_in_the_end(wanted: list[Placed], most: int) -> None:
    for _ in range(40 * len(wanted)):
        changes = arrange(wanted, (), most)
        assert len(changes) <= most
        if not changes:
            break
        wanted = after(wanted, changes)

    assert in_place(wanted) == wanted


def in_order(wanted: Sequence[Placed]) -> int:
    """Return how many of the first jobs would start first now, in their order."""
    pairs = zip(in_place(wanted), wanted, strict=True)
    return next((rank for rank, (stands, job) in enumerate(pairs) if stands.name != job.name), len(wanted))


def exchanged(wanted: Sequence[Placed], ranks: int) -> int:
    """Return how many changes an exchange takes that puts so many ranks in order: those moved in, out, and within."""
    stands = [job.name for job in in_place(wanted)[:ranks]]
    front = [job.name for job in wanted[:ranks]]
    return sum(a != b for a, b in zip(stands, front, strict=True)) + len(set(stands) - set(front))


@given(st.permutations(range(1, 41)), st.integers(2, 30))
def test_a_limit_gives_the_longest_front_that_an_exchange_of_priorities_can_give(order: list[int], most: int) -> None:
    wanted = [placed(number, 1000 - number) for number in order]
    arranged = after(wanted, arrange(wanted, (), most))
    longest = max(ranks for ranks in range(len(wanted) + 1) if exchanged(wanted, ranks) <= most)

    assert in_order(arranged) >= longest
    if exchanged(wanted, longest):
        assert priorities(arranged) == priorities(wanted)


@pytest.mark.parametrize(
    ("wanted", "most", "changes", "ranks"),
    [
        ([placed(2, 12), placed(1, 10), placed(3, 12)], 1, [("3", 10)], 3),
        ([placed(3, 12), placed(1, 10), placed(2, 12), placed(4, 12)], 2, [("3", 13)], 1),
        ([placed(2, 10), placed(1, 10), placed(4, 12), placed(3, 10)], 2, [("4", 10), ("2", 12)], 2),
        ([placed(n, 10) for n in (1, 3, 2, 5, 4)], 2, [("1", 12), ("3", 12)], 3),
        ([placed(3, 12), placed(1, 10), placed(4, 12), placed(2, 11)], 2, [("4", 10), ("1", 11)], 2),
        (
            [placed(3, 12), placed(1, 10), placed(2, 10), placed(4, 12), placed(5, 12)],
            2,
            [("4", 10), ("5", 10)],
            5,
        ),
    ],
)
def test_with_a_limit_nobody_of_a_front_keeps_what_would_let_him_start_after_one_behind(
    wanted: list[Placed], most: int, changes: list[tuple[str, int]], ranks: int
) -> None:
    found = arrange(wanted, (), most)

    assert [(change.job.name, change.priority) for change in found] == changes
    assert in_order(after(wanted, found)) == ranks


def test_where_equal_priorities_make_the_reckoned_front_too_dear_a_little_less_of_it_is_put_in_order() -> None:
    """By an exchange the whole order would take 12 changes; as equals have to be parted, it takes more."""
    high, low = (16, 2, 4, 1, 15, 9, 5), (12, 7, 3, 13, 11, 10, 6)
    order = (16, 2, 4, 12, 1, 15, 7, 14, 9, 3, 13, 5, 11, 8, 10, 6)
    wanted = [placed(number, 12 if number in high else 10 if number in low else 11) for number in order]

    assert max(ranks for ranks in range(17) if exchanged(wanted, ranks) <= 12) == 16
    assert in_order(after(wanted, arrange(wanted, (), 12))) == 14


@pytest.mark.parametrize(
    ("others", "lifted"), [([], True), ([9], False), ([10], False), ([8, 11], True), ([8, 10, 12], False)]
)
def test_equal_ones_are_parted_upwards_only_where_no_other_job_stands_between(others: list[int], lifted: bool) -> None:
    """5 and 4 are equal: 5 rises by one, where no other stands at its 9 or at the 10 that it gets."""
    wanted = [placed(6, 20), placed(5, 9), placed(4, 9), placed(3, 8), placed(2, 7), placed(1, 6)]

    assert [(each.job.name, each.priority) for each in arrange(wanted, others, 1)] == [
        ("5", 10) if lifted else ("1", 5)
    ]


def test_as_many_changes_as_allowed_may_part_equal_ones_downwards() -> None:
    found = arrange([placed(2, 9), placed(1, 9)], (), 1)

    assert [(change.job.name, change.priority) for change in found] == [("1", 8)]


@given(lines(), st.integers(1, 6))
def test_with_a_limit_no_job_of_a_front_in_order_loses_its_place(wanted: list[Placed], most: int) -> None:
    assert in_order(after(wanted, arrange(wanted, (), most))) >= in_order(wanted)


def test_with_a_limit_the_front_is_right_first_by_exchange() -> None:
    line = [placed(number, 10_000 - 100 * number) for number in range(1, 41)]
    wanted = [line[39], *line[:39]]
    changes = arrange(wanted, (), 5)
    arranged = after(wanted, changes)

    assert in_place(arranged)[:3] == arranged[:3]
    assert priorities(arranged) == priorities(wanted)


@given(lines(), st.integers(1, 6), st.lists(numbers, max_size=5))
def test_nobody_is_lifted_over_another_job_to_part_equal_priorities(
    wanted: list[Placed], most: int, others: list[int]
) -> None:
    """However many jobs there are that stand at a priority or above, there are no more of them than without us."""
    arranged = after(wanted, arrange(wanted, others, most))
    for other in others:
        standing = [job for job in arranged if job.priority >= other]
        assert len(standing) <= len([job for job in wanted if job.natural >= other - slack(wanted)])


@given(lines(), st.integers(1, 12), st.integers(0, 12))
def test_wherever_the_changes_break_off_no_more_jobs_stand_high(wanted: list[Placed], most: int, done: int) -> None:
    changes = arrange(wanted, (), most)
    broken_off = sorted(after(wanted, changes[:done]), key=lambda job: -job.priority)
    before = sorted((job.priority for job in wanted), reverse=True)
    complete = sorted((job.priority for job in after(wanted, changes)), reverse=True)

    for job, old, new in zip(broken_off, before, complete, strict=True):
        assert job.priority <= max(old, new)


@given(st.lists(st.integers(0, 8), max_size=7))
def test_the_longest_subsequence_that_never_rises(levels: list[int]) -> None:
    found = longest_falling(levels)
    longest = max(
        (
            size
            for size in range(len(levels) + 1)
            for places in combinations(range(len(levels)), size)
            if all(levels[a] >= levels[b] for a, b in pairwise(places))
        ),
        default=0,
    )

    assert found == sorted(found)
    assert len(found) == longest
    assert all(levels[a] >= levels[b] for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], []),
        ([placed(1, 9)], []),
        ([placed(2, 9), placed(1, 9)], [("1", 8)]),
        ([placed(1, 9), placed(2, 9)], []),
        ([placed(3, 5), placed(1, 10), placed(2, 8)], [("1", 8), ("2", 5), ("3", 10)]),
        ([placed(2, LOWEST), placed(1, LOWEST)], []),
        ([placed(3, 3), placed(2, 3), placed(1, 3)], [("2", 2), ("1", 2)]),
        ([placed(1, 5), placed(2, 3, -5)], [("2", 1)]),
    ],
)
def test_small_lines(wanted: list[Placed], expected: list[tuple[str, int]]) -> None:
    """Equal priorities start by id, so only what is against the ids takes a step down; nobody gets less than 1.

    Nor is anybody lowered to 1, at which nothing tells any more what he would have without us.
    """
    assert [(change.job.name, change.priority) for change in arrange(wanted)] == expected
