"""The owner's own log against the tracker's word: only what both say can lift the ceiling of an open server."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.corroborate import Agreed, Claimed, Doubt, NoLog, OwnerLog, corroborated, worth_waiting
from evalstopd.core.curve import curve
from evalstopd.core.detectors import Stop
from evalstopd.core.model import Mode, Point, Rung
from evalstopd.core.plan import verdicts
from evalstopd.core.rules import Named
from evalstopd.core.watch import Terms

TERMS = Terms(Rung.WARN, "k-declines:k=2", "score", Mode.MAX)
SCORES = (0.1, 0.4, 0.8, 0.7, 0.6)
FILE = "checkpoint-50/trainer_state.json"


def points(scores: tuple[float, ...] = SCORES, life: int = 0) -> tuple[Point, ...]:
    return tuple(Point("r", 10 * n, score, n, life, arrived_s=float(n)) for n, score in enumerate(scores, 1))


def claimed(found: tuple[Point, ...], terms: Terms = TERMS) -> Claimed:
    return Claimed(curve(found), found, terms, Named.COMMENT)


def log(scores: tuple[float, ...] = SCORES, **more: tuple[tuple[int, float], ...]) -> OwnerLog:
    return OwnerLog(FILE, "d" * 64, {"score": tuple((10 * n, each) for n, each in enumerate(scores, 1)), **more})


def places(of: Claimed) -> list[int]:
    return [at for at, answer in enumerate(verdicts(of.evals, of.terms)) if isinstance(answer, Stop)]


def judged(found: OwnerLog | NoLog, of: Claimed) -> Agreed | Doubt:
    return corroborated(found, of, places(of))


def test_the_same_evals_in_the_owners_log_bear_out_the_stop() -> None:
    agreed = judged(log(), claimed(points()))

    assert agreed == Agreed(
        4, f"steps 30 to 50 and the verdict as in the owner's checkpoint-50/trainer_state.json, SHA-256 {'d' * 64}"
    )


def test_a_score_may_differ_by_rounding_and_no_more() -> None:
    assert isinstance(judged(log((0.1, 0.4, 0.8, 0.7, 0.6 * (1 + 1e-9))), claimed(points())), Agreed)
    assert isinstance(judged(log((0.1, 0.4, 0.8, 0.7, 0.6 * (1 + 1e-4))), claimed(points())), Doubt)


def test_each_eval_from_the_best_on_must_be_in_the_log() -> None:
    for missing in (2, 3, 4):
        own = log()
        left = tuple(pair for n, pair in enumerate(own.series["score"]) if n != missing)
        later = (*left, (60, 0.5))
        found = judged(replace(own, series={"score": later}), claimed(points()))

        assert found == Doubt(f"the owner's {FILE} does not have the score of step {10 * missing + 10}")


def test_the_last_stop_that_the_log_reaches_is_taken() -> None:
    """A trainer evaluates, then saves: the newest eval is not in any file yet."""
    of = claimed(points((*SCORES, 0.5, 0.4)))
    found = judged(log((*SCORES, 0.5)), of)

    assert isinstance(found, Agreed)
    assert of.evals[found.at].step == 60


def test_a_log_that_ends_before_the_stop_may_still_grow_one_without_the_metric_does_not() -> None:
    assert judged(log(SCORES[:4]), claimed(points())) == Doubt(
        f"the owner's {FILE} does not reach the eval", later=True
    )
    empty = OwnerLog(FILE, "d" * 64, {"other": ((10, 0.1),)})
    assert judged(empty, claimed(points())) == Doubt(f"the owner's {FILE} has nothing of the metric")


def test_no_log_is_a_doubt_for_the_reason_given() -> None:
    assert judged(NoLog("none there", later=True), claimed(points())) == Doubt("none there", later=True)


def test_a_second_value_under_a_step_of_this_life_is_a_doubt_even_before_the_best() -> None:
    """Whoever may write to the run can hide the job's own point behind one of another run's log, not remove it."""
    own = (0.1, 0.4, 0.8, 0.7, 0.6)
    hidden = (*points((0.2, 0.3, 0.4, 0.5, 0.6)), *(replace(each, timestamp_ms=100) for each in points(own)))
    of = claimed(hidden)
    assert [each.score for each in of.evals] == list(own)

    assert judged(log(own), of) == Doubt(f"the owner's {FILE} does not have the score of step 10")


def test_a_second_value_under_the_step_of_the_stop_itself_is_a_doubt() -> None:
    of = claimed((*points(), Point("r", 50, 0.65, 0, arrived_s=1.0)))
    assert [each.score for each in of.evals] == list(SCORES)

    assert judged(log(), of) == Doubt(f"the owner's {FILE} does not have the score of step 50")


def test_an_eval_of_an_earlier_life_counts_from_the_best_on_up_to_the_stop() -> None:
    """Of the present life there are only the evals from the given place on."""
    for step, own in ((40, (0.1, 0.4, 0.8, 0.75, 0.6)), (50, (0.1, 0.4, 0.8, 0.7, 0.65))):
        of = Claimed(curve(points()), points()[step // 10 :], TERMS, Named.COMMENT)

        assert judged(log(own), of) == Doubt(f"the owner's {FILE} does not have the score of step {step}")


def test_next_to_zero_a_score_may_differ_by_rounding_too() -> None:
    falling = (0.5, 0.25, 0.0)
    assert isinstance(judged(log((0.5, 0.25, 1e-13)), claimed(points(falling))), Agreed)
    assert isinstance(judged(log((0.5, 0.25, 1e-9)), claimed(points(falling))), Doubt)


def test_points_of_an_earlier_life_need_not_be_in_the_log_before_the_best() -> None:
    """They were logged by a process whose log may be gone; the verdict must stand without them."""
    of = Claimed(curve(points()), points()[2:], TERMS, Named.COMMENT)
    own = replace(log(), series={"score": log().series["score"][2:]})

    assert isinstance(judged(own, of), Agreed)


def test_what_a_stranger_logs_of_the_noise_stops_nothing() -> None:
    """Tiny standard errors beside honest evals would make a rule that reckons with noise less careful."""
    terms = replace(TERMS, rule="drop-test-paper")
    shaky = (0.5, 0.61, 0.48, 0.6, 0.49, 0.585, 0.5, 0.52)
    honest = points(shaky)
    told = tuple(replace(each, stderr=0.001) for each in honest)
    of = claimed(told, terms)
    assert places(of)

    assert judged(log(shaky), of) == Doubt(f"the rule does not stop at step 80 on the owner's {FILE} alone")
    errors = tuple((each.step, 0.001) for each in honest)
    assert isinstance(judged(log(shaky), replace(of, terms=replace(terms, items=250_000))), Agreed), "the site's word"
    assert isinstance(judged(log(shaky, score_stderr=errors), of), Agreed)


def test_waiting_ends_after_ten_minutes_or_five_stops() -> None:
    of = claimed(points((*SCORES, 0.5, 0.4, 0.3, 0.2, 0.1)))

    assert worth_waiting(of.evals, [4, 5], now_s=606.0)
    assert not worth_waiting(of.evals, [4, 5], now_s=607.0)
    assert worth_waiting(of.evals, [4, 5, 6, 7, 8], now_s=609.0)
    assert not worth_waiting(of.evals, [4, 5, 6, 7, 8], now_s=610.0)
    assert not worth_waiting(of.evals, [4, 5, 6, 7, 8, 9], now_s=10.0)


values = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.8]) | st.floats(-2, 2), min_size=1, max_size=12)


@given(values, values)
def test_whoever_can_only_write_to_the_run_can_make_no_log_agree(own: list[float], told: list[float]) -> None:
    """Whatever points a run shows, an agreed stop is one that the rule makes of the owner's own evals alone."""
    of = claimed(points(tuple(told)))
    found = judged(log(tuple(own)), of)

    if isinstance(found, Agreed):
        alone = curve(points(tuple(own)))
        reached = [each for each in alone if each.step <= of.evals[found.at].step]
        assert isinstance(verdicts(reached, TERMS)[-1], Stop)
        shown = [each.score for each in of.evals[: found.at + 1]]
        assert shown == pytest.approx([each.score for each in reached], rel=1e-6, abs=1e-9)
