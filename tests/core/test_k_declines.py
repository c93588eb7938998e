"""The paper's rule, held to its exact meaning and to the exact law of its false stops."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.curve import best, curve, is_score, per_step
from evalstopd.core.detectors import Declining, KDeclines, KeepGoing, Stop, Verdict, detector, fold
from evalstopd.core.model import Eval, JobView, Mode, Point

VIEW = JobView("1", 0.0, 1)
scores = st.floats(-10, 10, allow_nan=False)


def answers(rule: KDeclines, values: list[float]) -> tuple[Verdict, ...]:
    return fold(rule, VIEW, [Eval(step, value) for step, value in enumerate(values)])


@pytest.mark.rates
@pytest.mark.parametrize(("k", "mean", "runs"), [(1, 2.718, 8000), (2, 7.924, 8000), (3, 29.98, 6000)])
def test_flat_noise_is_stopped_after_the_exact_mean_number_of_evals(k: int, mean: float, runs: int) -> None:
    """The law holds for any i.i.d. continuous noise, whatever its size (paper.md: 2.718 / 7.924 / 29.98)."""
    stream = random.Random(f"flat {k}")
    rule = KDeclines(k)
    lengths = []
    for _ in range(runs):
        state, count = rule.start(VIEW), 0
        while True:
            count += 1
            state, verdict = rule.step(state, Eval(count, stream.gauss(0.0, 3.0)))
            if isinstance(verdict, Stop):
                break
        lengths.append(count)
    spread = math.sqrt(sum((n - mean) ** 2 for n in lengths) / runs / runs)

    assert abs(sum(lengths) / runs - mean) < 4 * spread


def test_two_declines_in_a_row_stop_and_a_rise_or_tie_resets() -> None:
    assert answers(KDeclines(2), [1, 0.9, 1.0, 0.9, 0.9, 0.8, 0.7]) == (
        KeepGoing(), Declining(1, 2), KeepGoing(), Declining(1, 2), KeepGoing(), Declining(1, 2),
        Stop("the eval score fell 2 times in a row", 2),
    )  # fmt: skip


def test_it_goes_on_saying_stop_while_the_score_goes_on_falling() -> None:
    assert [type(v).__name__ for v in answers(KDeclines(2), [4, 3, 2, 1])] == [
        "KeepGoing", "Declining", "Stop", "Stop",
    ]  # fmt: skip


def test_a_fall_of_exactly_min_delta_does_not_count() -> None:
    rule = KDeclines(1, min_delta=0.5)

    assert answers(rule, [1.0, 0.5])[-1] == KeepGoing()
    assert isinstance(answers(rule, [1.0, 0.4999])[-1], Stop)


def test_with_mode_min_a_rise_is_the_decline() -> None:
    assert isinstance(answers(KDeclines(2, Mode.MIN), [1, 2, 3])[-1], Stop)
    assert answers(KDeclines(2, Mode.MIN), [3, 2, 1])[-1] == KeepGoing()


@given(st.lists(scores, min_size=1, max_size=30), st.data())
def test_missing_nan_and_infinite_scores_neither_count_nor_reset(values: list[float], data: st.DataObject) -> None:
    bad = st.sampled_from([math.nan, math.inf, -math.inf, 1.797e308, -1.797e308])
    holes = data.draw(st.lists(st.tuples(st.integers(0, len(values)), bad), max_size=8))
    mixed = list(values)
    for place, value in sorted(holes, reverse=True):
        mixed.insert(place, value)

    assert answers(KDeclines(2), mixed) == answers(KDeclines(2), values)


def test_the_step_itself_passes_over_what_is_no_score() -> None:
    rule = KDeclines(2)

    assert rule.step((1.0, 1), Eval(3, math.nan)) == ((1.0, 1), Declining(1, 2))


@given(st.lists(scores, max_size=30), st.integers(1, 5))
def test_a_larger_k_never_stops_earlier(values: list[float], k: int) -> None:
    def first(verdicts: tuple[Verdict, ...]) -> int:
        return next((i for i, v in enumerate(verdicts) if isinstance(v, Stop)), len(verdicts))

    assert first(answers(KDeclines(k), values)) <= first(answers(KDeclines(k + 1), values))


points = st.builds(
    Point,
    run_id=st.sampled_from(["a", "b"]),
    step=st.integers(0, 12),
    value=st.one_of(scores, st.sampled_from([math.nan, math.inf])),
    timestamp_ms=st.integers(0, 20),
    life=st.integers(0, 2),
)


@given(st.lists(points, max_size=40), st.randoms())
def test_the_curve_depends_on_the_points_alone_not_on_their_order_or_repetition(
    given_points: list[Point], shuffle: random.Random
) -> None:
    again = [*given_points, *given_points]
    shuffle.shuffle(again)

    assert curve(again) == curve(given_points)
    assert [e.step for e in curve(given_points)] == sorted({e.step for e in curve(given_points)})


@given(st.lists(scores, min_size=1, max_size=25, unique=True), st.integers(0, 24), st.data())
def test_a_late_point_ends_in_the_fold_of_the_sorted_curve(values: list[float], late: int, data: st.DataObject) -> None:
    """Whatever arrives when, the final verdicts are those of the whole curve in step order."""
    full = [Point("r", step, value, step) for step, value in enumerate(values)]
    order = data.draw(st.permutations(full))
    arrived: list[Point] = []
    last: tuple[Verdict, ...] = ()
    for point in order:
        arrived.append(point)
        last = fold(KDeclines(2), VIEW, curve(arrived))

    assert last == fold(KDeclines(2), VIEW, curve(full))


@given(st.lists(scores, min_size=1, max_size=30), st.lists(st.integers(1, 6), min_size=1, max_size=30))
def test_polling_rarely_gives_the_same_verdicts_at_the_same_evals(values: list[float], gaps: list[int]) -> None:
    """Points in step order, seen in batches of any size: each batch's fold agrees with the eval-by-eval fold."""
    full = [Point("r", step, value, step) for step, value in enumerate(values)]
    every = fold(KDeclines(2), VIEW, curve(full))
    seen = 0
    for gap in gaps:
        seen = min(len(full), seen + gap)

        assert fold(KDeclines(2), VIEW, curve(full[:seen])) == every[:seen]


def test_what_a_later_life_repeats_replaces_the_earlier_life() -> None:
    first = [Point("a", 10, 0.5, 1000), Point("a", 20, 0.9, 2000)]
    later = [Point("b", 20, 0.4, 500, life=1)]

    assert [(e.step, e.score, e.life) for e in curve([*later, *first])] == [(10, 0.5, 0), (20, 0.4, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k-decline", "unknown rule 'k-decline'"),
        ("k-declines:q=3", "has no parameter 'q'"),
        ("k-declines:k=0", "k must be at least 1"),
        ("k-declines:k=1.5", "a whole number"),
        ("k-declines:k=two", "'two' is not a number"),
        ("k-declines:k=2,k=3", "each parameter once"),
        ("k-declines:min_delta=-1", "must be finite and not negative"),
        ("k-declines:min_delta=nan", "must be finite and not negative"),
    ],
)
def test_a_bad_rule_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        detector(text)


@pytest.mark.parametrize("text", ["k-declines:k=2", "k-declines:k=3,min_delta=0.06", "never"])
def test_a_rule_reads_back_from_its_own_text(text: str) -> None:
    assert detector(text).spec == text


def test_never_lets_every_run_go_on() -> None:
    assert set(fold(detector("never"), VIEW, [Eval(i, -float(i)) for i in range(50)])) == {KeepGoing()}


def test_the_reason_says_how_often_which_way_and_by_what_margin() -> None:
    rises = answers(KDeclines(1, Mode.MIN, min_delta=0.25), [1.0, 2.0])[-1]

    assert rises == Stop("the eval score rose 1 times in a row by more than 0.25 each", 1)


def test_the_largest_double_and_what_comes_near_it_is_no_score() -> None:
    assert [is_score(value) for value in (None, 0.0, 9.9e307, -9.9e307, 1e308, -1e308)] == [
        False, True, True, True, False, False,
    ]  # fmt: skip


def test_the_best_is_the_earliest_of_equals() -> None:
    seen = [Eval(1, 0.2), Eval(2, 0.5), Eval(3, 0.5), Eval(4, 0.2)]

    assert [getattr(best(seen, mode), "step", None) for mode in (Mode.MAX, Mode.MIN)] == [2, 1]
    assert best([], Mode.MAX) is None


def test_a_point_keeps_on_the_curve_what_is_known_of_it() -> None:
    point = Point("r", 3, 0.5, 1000, life=2, arrived_s=9.0, stderr=0.1, metric="acc")

    assert curve([point]) == (Eval(3, 0.5, 0.1, 2, "r", 9.0),)


@pytest.mark.parametrize(
    ("other", "wins"),
    [
        (Point("a", 1, 0.1, 5, life=1), True),
        (Point("a", 1, 0.1, 3000, life=0), True),
        (Point("a", 1, 0.9, 5, life=0), False),
        (Point("a", 1, 0.6, 2000, life=0), True),
        (Point("s", 1, 0.5, 2000, life=0), True),
        (Point("a", 1, 0.5, 2000, life=0), False),
    ],
)
def test_of_two_points_at_a_step_the_later_life_then_time_then_value_then_run_counts(other: Point, wins: bool) -> None:
    held = Point("r", 1, 0.5, 2000, life=0)

    for order in ([held, other], [other, held]):
        assert per_step(order) == ((other if wins else held),)


def test_a_run_that_begins_with_no_score_has_not_declined() -> None:
    rule = KDeclines(2)

    assert rule.step(rule.start(VIEW), Eval(1, math.nan))[1] == KeepGoing()


def run_of(run_id: str, start_ms: int, scores: dict[int, float], life: int = 0) -> list[Point]:
    return [Point(run_id, step, score, start_ms + step, life) for step, score in scores.items()]


def test_a_later_run_that_starts_earlier_takes_the_place_of_what_the_run_before_it_held_from_there() -> None:
    first = run_of("sft", 0, {10: 0.5, 20: 0.7, 30: 0.9})
    for start, steps in ((10, [10, 20]), (20, [10, 20, 30]), (31, [10, 20, 30, 31, 41])):
        second = run_of("rl", 1_000, {start: 0.1, start + 10: 0.2})
        points = [*first, *second]
        assert [each.step for each in curve(points)] == steps
        assert curve(points) == curve(points[::-1])
        assert [each.score for each in curve(points)][-2:] == [0.1, 0.2]


def test_a_run_that_lives_on_beside_a_shorter_one_before_it_is_whole() -> None:
    """A single point of an earlier run (an evaluation before training) takes nothing from a later one."""
    points = [*run_of("eval", 0, {0: 0.2}), *run_of("train", 1_000, {0: 0.1, 10: 0.5, 20: 0.6})]
    assert [each.score for each in curve(points)] == [0.1, 0.5, 0.6]


def test_runs_that_began_at_the_same_moment_take_nothing_from_each_other() -> None:
    points = [Point("a", 1, 0.1, 5), Point("a", 3, 0.3, 7), Point("b", 2, 0.2, 5)]
    assert [each.score for each in curve(points)] == [0.1, 0.2, 0.3]
