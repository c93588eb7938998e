"""What one job's evals cost grows with their number, not with its square: they must not stall a pass."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.corroborate import Claimed, OwnerLog, borne_out, contradicted
from evalstopd.core.curve import curve
from evalstopd.core.detectors import DETECTORS, KeepGoing, Stop, detector, fold
from evalstopd.core.logged import with_errors, with_items
from evalstopd.core.model import Eval, JobView, Mode, Point, Rung
from evalstopd.core.rules import Named
from evalstopd.core.watch import Terms
from tests.growth import MOST, grows_by

JOB = JobView("1", 0.0, 1, estimate_s=1e9)


def evals(count: int) -> list[Eval]:
    """A noisy curve that rises, stays and falls, so that a rule has all of its work to do."""
    stream = Random(count)
    means = (min(1.0, 3 * at / count) - max(0.0, at / count - 0.6) for at in range(count))
    return [
        Eval(at, (mean + stream.gauss(0, 0.05)) / 2, 0.02, elapsed_s=float(at), loss=-0.1 * at)
        for at, mean in enumerate(means)
    ]


@pytest.mark.parametrize("rule", [*sorted(DETECTORS), "blocks:c=1,slow=0.7,plain=1", "k-declines:k=2,ema=0.5"])
@pytest.mark.parametrize("newest", [False, True])
def test_the_verdicts_of_every_rule_cost_in_proportion_to_the_evals(rule: str, newest: bool) -> None:
    """Of all evals, or of the newest alone."""

    def work(count: int) -> Callable[[], object]:
        made, curve_ = detector(rule), evals(count)
        return lambda: fold(made, JOB, curve_, count - 1 if newest else 0)

    assert grows_by(work) < MOST


def test_a_window_of_half_the_run_costs_no_more() -> None:
    def work(count: int) -> Callable[[], object]:
        made, curve_ = detector(f"loss-plateau:window={count // 2}"), evals(count)
        return lambda: fold(made, JOB, curve_)

    assert grows_by(work) < MOST


def test_losses_of_curves_that_part_are_their_own() -> None:
    rule = detector("loss-plateau:window=1,min_gain=0.5")
    state, _ = rule.step(rule.start(JOB), Eval(0, 0.5, loss=3.0))

    assert isinstance(rule.step(state, Eval(1, 0.5, loss=1.0))[1], KeepGoing)
    assert isinstance(rule.step(state, Eval(1, 0.5, loss=2.9))[1], Stop)
    assert isinstance(rule.step(state, Eval(1, 0.5, loss=1.0))[1], KeepGoing)


def test_what_is_quadratic_is_seen() -> None:
    """The measure itself: a tuple that is made anew for each eval."""

    def work(count: int) -> Callable[[], object]:
        def all_anew() -> None:
            held: tuple[int, ...] = ()
            for at in range(count):
                held = (*held, at)

        return all_anew

    assert grows_by(work) >= MOST


def at_one_step(count: int) -> list[Point]:
    """Points of a script that logs without a step."""
    return [Point("r", 0, 0.1 + 0.5 * at / count, 1_000 * at) for at in range(count)]


LINEAR: dict[str, Callable[[list[Point]], object]] = {
    "curve": curve,
    "errors": lambda points: with_errors(points, points),
    "items": lambda points: with_items([Point("r", 9, each.value, each.timestamp_ms) for each in points], points),
    "contradicted": lambda points: contradicted(log_of(points), claimed(points)),
    "borne out": lambda points: borne_out(log_of(points), claimed(points)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_points_that_are_all_at_one_step_cost_in_proportion_too(name: str) -> None:
    def work(count: int) -> Callable[[], object]:
        points = at_one_step(count)
        return lambda: LINEAR[name](points)

    assert grows_by(work) < MOST


def log_of(points: list[Point]) -> OwnerLog:
    return OwnerLog("state.json", "", {"acc": tuple((each.step, each.value) for each in points)})


def claimed(points: list[Point]) -> Claimed:
    return Claimed(curve(points), points, Terms(Rung.ENFORCE, "recommended", "acc", Mode.MAX), Named.COMMENT)


TIMED = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.1, 0.2, 0.3, -1.0, float("nan")])), max_size=12)


@given(st.integers(0, 9), TIMED)
def test_the_error_is_the_nearest_in_time_and_the_smallest_of_those(at: int, timed: list[tuple[int, float]]) -> None:
    errors = [Point("r", 3, value, time_ms) for time_ms, value in timed]
    (found,) = with_errors([Point("r", 3, 0.5, at)], errors)

    near = [(abs(time_ms - at), value) for time_ms, value in timed if value > 0]
    assert found.stderr == (min(near)[1] if near else None)


@given(st.lists(st.sampled_from([0.0, 1e-13, -1e-13, 0.5, 0.5 + 4e-7, 0.5 + 6e-7, -0.5, 7e9]), max_size=6))
def test_a_score_is_in_the_log_if_any_of_its_step_is_that_close(logged: list[float]) -> None:
    for score in (0.0, 0.5, 0.5 + 5e-7, -0.5, 7e9 + 1, 1e-6):
        log = OwnerLog("state.json", "", {"acc": tuple((0, value) for value in logged)})
        near = any(abs(score - each) <= max(1e-6 * max(abs(score), abs(each)), 1e-12) for each in logged)

        assert borne_out(log, claimed([Point("r", 0, score, 0)])) is near
