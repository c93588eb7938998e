"""The owner's own log against falls in the run: what it contradicts, what it says nothing of, what it bears out."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.corroborate import (
    Agreed,
    Claimed,
    NoLog,
    OwnerLog,
    as_decided,
    borne_out,
    contradicted,
    corroborated,
)
from evalstopd.core.curve import curve
from evalstopd.core.intent import UNNAMED, Evidence
from evalstopd.core.model import Mode, Point, Rung
from evalstopd.core.rules import Named
from evalstopd.core.watch import Terms

TERMS = Terms(Rung.ENFORCE, "k-declines:k=2", "score", Mode.MAX)
FILE = "checkpoint-50/trainer_state.json"
FALL = (0.1, 0.4, 0.8, 0.7, 0.6)
END = f"; SHA-256 {'d' * 64}"


def log(*pairs: tuple[int, float], metric: str = "score") -> OwnerLog:
    return OwnerLog(FILE, "d" * 64, {metric: pairs})


def at_tens(*scores: float, first: int = 10) -> tuple[tuple[int, float], ...]:
    return tuple((first + 10 * n, score) for n, score in enumerate(scores))


def points(*pairs: tuple[int, float], life: int = 1, since_s: float = 1.0) -> tuple[Point, ...]:
    """Return points that arrived one a second, in this order; a later one of the same step is the newer."""
    return tuple(
        Point("r", step, score, 1000 * n + life, life, arrived_s=since_s + n) for n, (step, score) in enumerate(pairs)
    )


def claimed(found: tuple[Point, ...], life: int = 1, named: Named = Named.COMMENT) -> Claimed:
    """Return what a run tells of a job in this life."""
    return Claimed(curve(found), [each for each in found if each.life == life], TERMS, named)


def against(owner: OwnerLog | NoLog, *pairs: tuple[int, float]) -> str:
    return contradicted(owner, claimed(points(*pairs)))


def test_another_score_at_a_step_from_the_best_on_is_a_contradiction() -> None:
    for n in (2, 3, 4):
        own = [*FALL]
        own[n] += 0.01

        assert against(log(*at_tens(*own)), *at_tens(*FALL)) == (
            f"the owner's {FILE} has {own[n]:.10g} at step {10 * n + 10}, not {FALL[n]:.10g}{END}"
        )


def test_a_score_may_differ_by_rounding_and_no_more() -> None:
    assert against(log(*at_tens(0.1, 0.4, 0.8, 0.7, 0.6 * (1 + 1e-9))), *at_tens(*FALL)) == ""
    assert against(log(*at_tens(0.1, 0.4, 0.8, 0.7, 0.6 * (1 + 1e-4))), *at_tens(*FALL)) != ""


def test_next_to_zero_a_score_may_differ_by_rounding_too() -> None:
    for scores, near, off in (((0.5, 0.25, 0.0), 1e-13, 1e-9), ((0.5, 0.25, 1e-9), 1e-9 + 1e-13, 1e-6)):
        assert against(log(*at_tens(*scores[:2], near)), *at_tens(*scores)) == ""
        assert against(log(*at_tens(*scores[:2], off)), *at_tens(*scores)) != ""
    assert against(log(*at_tens(0.5, 0.25 * (1 + 1e-7))), *at_tens(0.5, 0.25)) == ""


@pytest.mark.parametrize("mode", Mode)
def test_a_fall_that_a_stranger_logs_over_a_rise_is_a_contradiction(mode: Mode) -> None:
    rise = at_tens(0.1, 0.2, 0.3, 0.4, 0.5)
    run = points(*rise, *at_tens(*FALL))
    buried = Claimed(curve(run), run, replace(TERMS, mode=mode), Named.COMMENT)

    assert contradicted(log(*rise), buried) == f"the owner's {FILE} has 0.2 at step 20, not 0.4{END}"


def test_a_step_between_the_logs_own_that_it_does_not_have_is_a_contradiction() -> None:
    rise = at_tens(0.1, 0.2, 0.3, 0.4, 0.5)

    assert against(log(*rise), *rise, (35, 0.1), (36, 0.0)) == (
        f"the owner's {FILE} has no eval at step 35, not 0.1{END}"
    )


def test_a_log_that_lags_behind_says_nothing_of_what_came_after_it() -> None:
    assert against(log(*at_tens(*FALL[:3])), *at_tens(*FALL)) == ""
    assert against(log(*at_tens(0.1, 0.4, 0.79)), *at_tens(*FALL)) != "", "of what it has it does"


def test_the_table_of_a_resumed_training_says_nothing_of_the_life_before() -> None:
    """Lightning begins a new file: the best lies before it."""
    before, after = points(*at_tens(*FALL[:3]), life=0), points(*at_tens(*FALL[3:], first=40), since_s=9.0)

    assert contradicted(log(*at_tens(*FALL[3:], first=40)), claimed((*before, *after))) == ""


def test_of_the_life_before_only_another_score_at_a_step_that_the_log_has_is_a_contradiction() -> None:
    """The life after evaluates at other steps: what the log does not have there, nobody has forged."""
    before, after = points((10, 0.8), (20, 0.7), (30, 0.65), life=0), points((25, 0.6), (35, 0.5), since_s=9.0)
    of = claimed((*before, *after))

    assert contradicted(log((10, 0.8), (20, 0.7), (25, 0.6), (35, 0.5)), of) == ""
    assert contradicted(log((10, 0.8), (20, 0.75), (25, 0.6), (35, 0.5)), of) == (
        f"the owner's {FILE} has 0.75 at step 20, not 0.7{END}"
    )


def test_of_the_life_before_nothing_counts_before_the_best() -> None:
    before, after = points((10, 0.2), (20, 0.8), life=0), points((30, 0.7), (40, 0.6), since_s=9.0)

    assert contradicted(log((10, 0.1), (20, 0.8), (30, 0.7), (40, 0.6)), claimed((*before, *after))) == ""


def test_of_the_life_before_the_best_counts_itself_and_nothing_before_a_best_that_is_the_newest_eval() -> None:
    before, after = points((10, 0.8), (20, 0.7), life=0), points((30, 0.9), since_s=9.0)
    falls = points((30, 0.6), since_s=9.0)

    assert contradicted(log((10, 0.85), (20, 0.75), (30, 0.9)), claimed((*before, *after))) == ""
    assert contradicted(log((10, 0.85), (20, 0.7), (30, 0.6)), claimed((*before, *falls))) == (
        f"the owner's {FILE} has 0.85 at step 10, not 0.8{END}"
    )


def test_of_the_present_life_evals_before_the_best_count_as_well() -> None:
    """They are part of what a rule takes for noise."""
    assert against(log(*at_tens(0.2, *FALL[1:])), *at_tens(*FALL)) == (
        f"the owner's {FILE} has 0.2 at step 10, not 0.1{END}"
    )


def test_a_point_that_a_later_one_replaced_is_no_contradiction() -> None:
    """Two trainings in one run, one after the other: the log is that of the second."""
    assert against(log(*at_tens(*FALL)), *at_tens(0.9, 0.9, 0.9), *at_tens(*FALL)) == ""


@pytest.mark.parametrize("step", [10**9, 10**18, 70, 5, 0, -3])
def test_a_step_beyond_the_logs_own_is_a_contradiction_where_it_came_while_the_log_was_written(step: int) -> None:
    """A log that lags has nothing after; one that was written before and after an eval would have it."""
    rise = at_tens(0.1, 0.2, 0.3, 0.4, 0.5)
    meanwhile = (*rise[:3], (step, 0.05), *rise[3:])

    assert against(log(*rise), *meanwhile) == f"the owner's {FILE} has no eval at step {step}, not 0.05{END}"
    if step > 50:
        assert against(log(*rise), *rise, (step, 0.05)) == ""
    else:
        assert against(log(*rise), (step, 0.05), *rise) == ""


def test_a_score_that_arrived_with_the_last_one_of_the_log_is_none_that_came_before_it() -> None:
    """Of what one reading brought nobody knows the order."""
    together = tuple(replace(each, arrived_s=5.0) for each in points(*at_tens(*FALL)))

    assert contradicted(log(*at_tens(*FALL[:3])), claimed(together)) == ""


@pytest.mark.parametrize("with_the", [1.0, 9.0])
def test_a_far_step_that_arrived_with_the_first_or_the_last_shared_point_may_lie_outside_the_log(
    with_the: float,
) -> None:
    shared = points(*at_tens(0.1, 0.2)), points((30, 0.3), since_s=9.0)
    (far,) = points((10**9, 0.05), since_s=with_the)

    assert contradicted(log(*at_tens(0.1, 0.2, 0.3)), claimed((*shared[0], *shared[1], far))) == ""
    assert contradicted(log(*at_tens(0.1, 0.2, 0.3)), claimed((*shared[0], *shared[1], replace(far, arrived_s=5.0))))


def test_what_is_no_log_of_these_evals_says_nothing() -> None:
    for silent in (
        NoLog("none"),
        log(),
        log(*at_tens(*FALL), metric="other"),
        log(*at_tens(0.11, 0.22, 0.33, 0.44, 0.55)),  # of another training that evaluates at the same steps
        log((10, float("nan"))),
    ):
        assert against(silent, *at_tens(*FALL)) == ""
        assert not borne_out(silent, claimed(points(*at_tens(*FALL))))


def test_a_step_where_the_trainer_logged_no_number_counts_as_one_it_does_not_have() -> None:
    assert against(log(*at_tens(0.1, 0.4, float("nan"), 0.7, 0.6)), *at_tens(*FALL)) == (
        f"the owner's {FILE} has no eval at step 30, not 0.8{END}"
    )


def test_a_log_that_evaluated_a_step_twice_has_both() -> None:
    assert against(log(*at_tens(*FALL[:4]), (40, 0.75), (50, 0.6)), *at_tens(*FALL)) == ""


def test_borne_out_is_what_the_log_reaches_and_does_not_contradict() -> None:
    of = claimed(points(*at_tens(*FALL)))

    assert borne_out(log(*at_tens(*FALL)), of)
    assert not borne_out(log(*at_tens(*FALL[:4])), of), "not there yet"
    assert not borne_out(log(*at_tens(0.1, 0.4, 0.9, 0.7, 0.6)), of)


def test_a_decided_stop_is_held_against_the_log_by_its_own_evals_whatever_the_run_shows_since() -> None:
    rise = at_tens(0.1, 0.2, 0.3, 0.4, 0.5)
    forged = (*rise, (30, 0.01), (40, 0.005))
    restored = points(*forged, *rise)
    evidence = evidence_of(claimed(points(*forged)))

    assert contradicted(log(*rise), claimed(restored)) == ""
    assert contradicted(log(*rise), as_decided(evidence, claimed(restored))) == (
        f"the owner's {FILE} has 0.3 at step 30, not 0.01{END}"
    )


def test_a_decided_stops_evals_arrived_when_they_first_did() -> None:
    of = claimed(points((10, 0.5), (20, 0.4), (10, 0.5)))
    held = as_decided(evidence_of(of), of)

    assert [(each.step, each.score, each.arrived_s) for each in held.evals] == [(10, 0.5, 1.0), (20, 0.4, 2.0)]
    assert (held.points, held.terms) == (of.points, of.terms)


def test_evidence_that_was_tampered_with_is_held_against_the_log_as_far_as_it_goes() -> None:
    of = claimed(points(*at_tens(*FALL)))
    cut, empty = (replace(evidence_of(of), steps=steps, scores=(0.1,)) for steps in ((10, 20), ()))

    assert contradicted(log(*at_tens(*FALL)), as_decided(cut, of)) == ""
    assert contradicted(log(*at_tens(*FALL)), as_decided(empty, of)) == ""
    assert not borne_out(log(*at_tens(*FALL)), as_decided(empty, of))


def evidence_of(of: Claimed) -> Evidence:
    steps, scores = tuple(each.step for each in of.evals), tuple(each.score for each in of.evals)
    return Evidence("r", "score", "max", "r", "comment", True, steps, scores, steps[-1], 10, 0.5, None, 2, "it fell")


SCORE = st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.8]) | st.floats(-2, 2)
PAIRS = st.lists(st.tuples(st.integers(1, 12).map(lambda n: 10 * n), SCORE), min_size=1, max_size=14)


@given(PAIRS, PAIRS, st.integers(0, 1))
def test_a_log_that_bears_a_stop_out_never_contradicts_it_and_one_that_contradicts_never_bears_it_out(
    own: list[tuple[int, float]], told: list[tuple[int, float]], earlier: int
) -> None:
    """Whatever run and log hold; the first evals may be an earlier life's."""
    cut = earlier * len(told) // 2
    of = claimed((*points(*told[:cut], life=0), *points(*told[cut:], since_s=100.0)))
    at = len(of.evals) - 1
    for owner in (log(*own), log(*told), log(*own, *told)):
        agreed = isinstance(corroborated(owner, of, [at]), Agreed)
        objects = bool(contradicted(owner, of))

        assert not (agreed and objects)
        assert not (borne_out(owner, of) and objects)
        assert not agreed or borne_out(owner, of) or of.evals[at].life == 0


@given(PAIRS, PAIRS)
def test_a_log_of_the_very_life_that_reaches_as_far_contradicts_just_what_it_does_not_have(
    own: list[tuple[int, float]], told: list[tuple[int, float]]
) -> None:
    """Where it begins and ends with the run, and shares an eval with it, silence means that all scores are in it."""
    ends = ((5, 0.4), (500, 0.3))
    of = claimed(points(ends[0], *told, ends[1]))
    owner = log(ends[0], *own, ends[1])
    missing = [each.step for each in of.evals if not any(_same(each, pair) for pair in owner.series["score"])]

    assert bool(contradicted(owner, of)) is bool(missing)
    assert borne_out(owner, of) is not bool(missing)


def _same(one: object, pair: tuple[int, float]) -> bool:
    return (one.step, one.score) == (pair[0], pytest.approx(pair[1], rel=1e-6, abs=1e-12))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("named", "without", "another"),
    [(Named.COMMENT, False, False), (Named.SITE, False, True), (Named.RUN, True, True)],
)
def test_a_metric_that_the_owners_log_does_not_have_counts_by_who_named_it(
    named: Named, without: bool, another: bool
) -> None:
    """Without a log the site's word is enough; beside a log that has other metrics only the comment's is."""
    run = claimed(points(*at_tens(*FALL)), named=named)
    other = log(*at_tens(*FALL), metric="accuracy")
    found = contradicted(NoLog("none"), run), contradicted(other, run)

    assert [each.startswith(UNNAMED) for each in found] == [without, another]
    assert contradicted(log(*at_tens(*FALL)), run) == ""
    assert not borne_out(other, run)
