"""Steps that come again: a training that starts over, a second series, and one late value are told from each other."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.again import Kind, Return, begun_again, in_time, returns, standing
from evalstopd.core.curve import curve, per_step
from evalstopd.core.model import Point

LONG_AGO = tuple(zip(range(10, 60, 10), (0.1, 0.2, 0.3, 0.4, 0.5), strict=True))
"""A training with evals at the steps 10 to 50."""

scores = st.floats(-1, 1, allow_nan=False)
anything = st.builds(
    Point,
    run_id=st.just("r"),
    step=st.integers(0, 8),
    value=st.one_of(scores, st.just(float("nan"))),
    timestamp_ms=st.integers(0, 30),
)


def logged(*values: tuple[int, float]) -> list[Point]:
    """Return points in the order in which they were logged, a second apart."""
    return [Point("r", step, value, 1_000 * place) for place, (step, value) in enumerate(values)]


def kinds(*values: tuple[int, float]) -> list[tuple[str, int]]:
    return [(back.kind.value, back.step) for back in returns(in_time(logged(*values)))]


@pytest.mark.parametrize(
    ("then", "found"),
    [
        ([], []),
        ([(60, 0.6), (70, 0.7)], []),
        ([(45, 0.9), (60, 0.6)], []),
        ([(50, 0.9)], []),
        ([(10, 0.1), (20, 0.2)], []),
        ([(20, float("nan"))], []),
        ([(45, 0.9), (45, 0.8)], []),
        ([(45, 0.9), (50, 0.9)], []),
        ([(20, 0.9)], [("open", 20)]),
        ([(20, 0.9), (20, 0.8)], [("open", 20)]),
        ([(20, 0.9), (60, 0.6)], [("apart", 20)]),
        ([(20, 0.9), (40, 0.6)], [("apart", 20), ("open", 40)]),
        ([(10, 0.9), (20, 0.9)], [("restart", 10)]),
        ([(10, 0.9), (20, 0.2)], [("restart", 10)]),
        ([(10, 0.9), (15, 0.9), (20, 0.9)], [("restart", 10)]),
        ([(40, 0.9), (50, 0.9), (60, 0.9), (70, 0.9)], [("restart", 40)]),
        ([(10, 0.9), (20, 0.9), (60, 0.9)], [("apart", 10)]),
        ([(10, 0.9), (20, 0.9), (30, 0.9), (10, 0.8)], [("restart", 10), ("open", 10)]),
        ([(10, 0.9), (20, 0.9), (10, 0.8), (20, 0.8)], [("restart", 10), ("restart", 10)]),
        ([(10, 0.9), (60, 0.6), (20, 0.9), (70, 0.7), (30, 0.9)], [("apart", 10), ("apart", 20), ("open", 30)]),
        ([(20, 0.9), (10, 0.9), (20, 0.8)], [("apart", 20), ("restart", 10)]),
        ([(20, 0.9), (60, 0.6), (20, 0.9), (70, 0.7)], [("apart", 20)]),
        ([(10, 0.9), (20, 0.9), (10, 0.9), (60, 0.6)], [("apart", 10)]),
        ([(10, 0.9), (20, 0.9), (15, 0.9), (60, 0.6)], [("apart", 10)]),
        ([(10, 0.9), (20, 0.9), (30, 0.9), (20, 0.9)], [("restart", 10)]),
        ([(30, 0.9), (40, 0.9), (10, 0.9)], [("restart", 30), ("open", 10)]),
        ([(10, 0.9), (20, 0.9), (15, 0.9), (30, 0.9), (15, 0.8)], [("restart", 10), ("open", 15)]),
    ],
)
def test_what_comes_after_a_step_that_comes_again_tells_what_it_was(
    then: list[tuple[int, float]], found: list[tuple[str, int]]
) -> None:
    assert kinds(*LONG_AGO, *then) == found


def test_a_going_back_has_its_points_up_to_what_comes_after_it() -> None:
    points = logged(*LONG_AGO, (20, 0.9), (10, 0.9), (20, 0.8), (60, 0.6), (40, 0.9))

    assert returns(points) == (Return(Kind.APART, 20, 5, 6), Return(Kind.APART, 10, 6, 8), Return(Kind.OPEN, 40, 9, 10))


@pytest.mark.parametrize(
    ("then", "left"),
    [
        ([(10, 0.6)], LONG_AGO),
        ([(10, 0.6), (20, 0.61)], ((10, 0.6), (20, 0.61))),
        (
            [(30, 0.6), (40, 0.61), (50, 0.62), (60, 0.63)],
            (*LONG_AGO[:2], (30, 0.6), (40, 0.61), (50, 0.62), (60, 0.63)),
        ),
        ([(10, 0.6), (60, 0.6)], ((10, 0.6), *LONG_AGO[1:], (60, 0.6))),
        ([(45, 0.6)], (*LONG_AGO[:4], (45, 0.6), LONG_AGO[4])),
        ([(10, 0.6), (20, 0.61), (10, 0.7), (20, 0.71), (30, 0.72)], ((10, 0.7), (20, 0.71), (30, 0.72))),
    ],
)
def test_of_a_training_that_starts_over_the_new_evals_are_the_curve(
    then: list[tuple[int, float]], left: tuple[tuple[int, float], ...]
) -> None:
    assert tuple((each.step, each.score) for each in curve(logged(*LONG_AGO, *then))) == left


def test_what_is_the_last_of_a_training_that_ended_is_a_correction() -> None:
    points = logged(*LONG_AGO, (10, 0.6))

    assert [each.value for each in per_step(points, ended=True)] == [0.6, 0.2, 0.3, 0.4, 0.5]
    again = logged(*LONG_AGO, (10, 0.6), (20, 0.7))
    assert [each.value for each in per_step(again, ended=True)] == [0.6, 0.7]


def test_points_of_one_moment_are_in_one_order_however_they_are_read() -> None:
    together = [Point("r", 10, value, 5) for value in (0.1, 0.2, 0.3)]

    assert in_time(together) == in_time(reversed(together))


def test_a_restart_in_one_life_takes_nothing_from_another_life_or_run() -> None:
    before = [Point("r", step, 0.3, 10 + step, life=-1) for step in (5, 10)]
    own = logged(*LONG_AGO, (20, 0.6), (30, 0.7))

    assert [(each.step, each.life) for each in curve([*before, *own])] == [(5, -1), (10, 0), (20, 0), (30, 0)]


@given(st.lists(anything, max_size=25), st.randoms())
def test_what_is_found_depends_on_no_order_of_reading_and_no_repetition(
    given: list[Point], shuffle: random.Random
) -> None:
    again = [*given, *given]
    shuffle.shuffle(again)

    def kept(points: list[Point]) -> list[tuple[Kind, int]]:
        return [(back.kind, back.step) for back in returns(in_time(points))]

    assert kept(again) == kept(given)
    assert curve(again) == curve(given)


@given(st.lists(anything, max_size=25))
def test_goings_back_follow_each_other_and_only_the_last_is_open(given: list[Point]) -> None:
    found = returns(in_time(given))

    assert all(one.end <= two.start for one, two in pairwise(found))
    assert all(back.start < back.end <= len(given) for back in found)
    assert all(back.kind is not Kind.OPEN for back in found[:-1])


@given(st.lists(scores, min_size=2, max_size=12, unique=True), st.data())
def test_a_training_that_starts_over_is_from_its_second_eval_on_its_own_curve(
    values: list[float], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(values) - 2))
    count = data.draw(st.integers(2, len(values) - first))
    over = [(step, values[step] + 5) for step in range(first, first + count)]

    found = [(each.step, each.score) for each in curve(logged(*enumerate(values), *over))]

    assert found == [*enumerate(values[:first]), *over]


@given(st.integers(1, 5), st.integers(4, 12))
def test_a_series_that_lags_is_never_taken_for_a_restart(lag: int, steps: int) -> None:
    values: list[tuple[int, float]] = []
    for step in range(steps):
        values.append((step, 0.5 + step / 100))
        values += [(step - lag, 0.9 + step / 100)] if step >= lag else []

    assert {kind for kind, _ in kinds(*values)} <= {"apart", "open"}
    assert len(kinds(*values)) == max(0, steps - lag)


@given(st.lists(anything, max_size=25))
def test_what_stands_is_what_no_later_restart_reaches_down_to(given: list[Point]) -> None:
    ordered = in_time(given)
    found = returns(ordered)

    def stands(place: int, point: Point) -> bool:
        replaced = any(b.kind is Kind.RESTART and place < b.start and point.step >= b.step for b in found)
        waits = any(b.kind is Kind.OPEN and b.start <= place < b.end for b in found)
        return not (replaced or waits)

    kept = [point for place, point in enumerate(ordered) if stands(place, point)]
    assert list(map(repr, reversed(kept))) == list(map(repr, standing(ordered, found)))


class Counted(int):
    """A step that counts how often steps are compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < int(other)


@pytest.mark.parametrize("lag", [3, 1_500])
def test_a_long_mixture_is_looked_through_without_starting_over_at_each_step(lag: int) -> None:
    """Two long series, and each point back is one: what a run may hold, and a stranger may log."""
    values = [pair for step in range(3_000) for pair in ((step, 0.5), (step - lag, 0.9)) if pair[0] >= 0]
    points = [Point("r", Counted(step), value + step / 1e5, place) for place, (step, value) in enumerate(values)]
    Counted.compared = 0

    assert len(returns(points)) > 1_400
    assert Counted.compared < 100 * len(points)


def again(steps: list[tuple[int, float, float]], since_s: float, up_to: int) -> tuple[str, int] | None:
    """Return what is said of steps, scores and moments of arrival."""
    points = [
        Point("r", step, score, timestamp_ms=number, arrived_s=at_s) for number, (step, score, at_s) in enumerate(steps)
    ]
    found = begun_again(reversed(points), since_s, up_to)
    return (found.kind.value, found.step) if found is not None else None


FIRST = [(10, 0.1, 1.0), (20, 0.8, 2.0), (30, 0.6, 3.0)]


@pytest.mark.parametrize(
    ("later", "found"),
    [
        ([], None),
        ([(40, 0.5, 4.0)], None),
        ([(10, 0.2, 4.0)], ("open", 10)),
        ([(10, 0.2, 3.0)], ("open", 10)),
        ([(10, 0.2, 3.0), (20, 0.2, 4.0)], ("restart", 10)),
        ([(10, 0.2, 2.0), (20, 0.2, 3.0), (30, 0.2, 4.0)], None),
        ([(10, 0.2, 4.0), (40, 0.2, 5.0)], None),
        ([(40, 0.5, 4.0), (50, 0.4, 4.0), (40, 0.6, 5.0), (50, 0.6, 5.0)], None),
        ([(10, 0.2, 4.0), (20, 0.2, 4.0), (30, 0.2, 4.0), (20, 0.3, 5.0)], ("open", 20)),
        ([(40, 0.5, 4.0), (30, 0.7, 5.0)], ("open", 30)),
        ([(10, 0.2, 4.0), *((at, 0.2, 5.0) for at in (20, 30, 40, 50)), (40, 0.3, 6.0)], ("restart", 10)),
        # The same values once more.
        ([(10, 0.1, 4.0)], ("open", 10)),
        ([(10, 0.1, 4.0), (20, 0.8, 4.0)], ("restart", 10)),
        ([(20, 0.8, 4.0), (30, 0.6, 5.0)], ("restart", 20)),
        ([(40, 0.5, 4.0), (30, 0.6, 5.0), (40, 0.5, 6.0)], ("restart", 30)),
        ([(10, 0.1, 3.0), (20, 0.8, 3.0), (20, 0.8, 4.0), (30, 0.6, 4.0)], ("restart", 20)),
        ([(10, 0.1, 4.0), (40, 0.5, 5.0)], None),
        ([(20, 0.8, 4.0), (20, 0.8, 4.0)], ("open", 20)),
        ([(20, 0.8, 4.0), (10, 0.1, 4.0)], ("open", 10)),
        ([(20, 0.8, 4.0), (40, 0.5, 5.0), (20, 0.8, 6.0), (50, 0.4, 6.0)], None),
        ([(30, 0.6, 4.0)], None),
        ([(40, 0.5, 4.0), (50, 0.4, 4.0), (40, 0.5, 5.0), (50, 0.4, 5.0)], None),
        # Steps that had no value.
        ([(5, 0.2, 4.0)], ("open", 5)),
        ([(5, 0.2, 4.0), (15, 0.3, 5.0)], ("restart", 5)),
        ([(15, 0.3, 4.0), (20, 0.8, 4.0)], ("restart", 15)),
        ([(25, 0.7, 4.0), (40, 0.5, 5.0)], None),
        ([(15, 0.7, 4.0), (40, 0.5, 4.0), (25, 0.7, 5.0), (50, 0.4, 5.0)], None),
        ([(25, 0.7, 4.0), (15, 0.7, 4.0), (40, 0.5, 5.0)], None),
        ([(15, 0.7, 3.0), (25, 0.7, 3.0)], None),
        ([(40, 0.5, 4.0), (35, 0.5, 5.0), (38, 0.5, 5.0)], None),
    ],
)
def test_what_began_again_since_a_decision_at_a_step_that_it_rests_on(
    later: list[tuple[int, float, float]], found: tuple[str, int] | None
) -> None:
    """Decided at the moment 3, on the steps up to 30."""
    assert again([*FIRST, *later], 3.0, 30) == found


@pytest.mark.parametrize("later", [((5, 0.2), (15, 0.3)), ((10, 0.1), (20, 0.8)), ((25, 0.7), (30, 0.6))])
def test_what_was_logged_before_the_decided_evals_and_came_late_begins_nothing_anew(
    later: tuple[tuple[int, float], ...],
) -> None:
    """Asynchronous logging sends values with the times at which they were logged."""
    known = [Point("r", step, score, 10 * step, arrived_s=at_s) for step, score, at_s in FIRST]
    late = [Point("r", step, score, 300 - place, arrived_s=4.0) for place, (step, score) in enumerate(later)]

    assert begun_again([*known, *late], 3.0, 30) is None
    anew = [Point("r", step, score, 301 + place, arrived_s=4.0) for place, (step, score) in enumerate(later)]
    assert begun_again([*known, *anew], 3.0, 30) == Return(Kind.RESTART, later[0][0], 4, 5)


def test_values_of_which_none_was_known_at_the_decision_are_no_going_back() -> None:
    assert begun_again([Point("r", step, 0.5, step, arrived_s=4.0) for step in (10, 20)], 3.0, 30) is None
