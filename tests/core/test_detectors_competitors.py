"""The rules that EvalStop is compared with."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.detectors import Declining, Detector, KeepGoing, Stop, detector, fold
from evalstopd.core.model import Eval, JobView, Mode

JOB = JobView("1", 0.0, 4, estimate_s=1000.0)


def stops_at(rule: Detector, points: list[Eval], job: JobView = JOB) -> int | None:
    """Return the place of the first stop, from 1 on."""
    verdicts = fold(rule, job, points)
    return next((place for place, verdict in enumerate(verdicts, 1) if isinstance(verdict, Stop)), None)


def scores(*values: float) -> list[Eval]:
    return [Eval(step, value) for step, value in enumerate(values, 1)]


def losses(*values: float | None) -> list[Eval]:
    return [Eval(step, 0.5, loss=value) for step, value in enumerate(values, 1)]


def test_elapsed_fraction_stops_at_the_first_eval_after_its_share_of_the_estimate() -> None:
    points = [Eval(step, 0.5, elapsed_s=elapsed) for step, elapsed in enumerate([300.0, 649.0, 650.0], 1)]

    assert stops_at(detector("elapsed-fraction"), points) == 3
    assert stops_at(detector("elapsed-fraction:share=0.3"), points) == 1


def test_elapsed_fraction_lets_a_job_go_on_whose_estimate_or_running_time_nobody_knows() -> None:
    rule = detector("elapsed-fraction")

    assert stops_at(rule, [Eval(1, 0.5, elapsed_s=1e9)], JobView("1", 0.0, 4)) is None
    assert stops_at(rule, [Eval(1, 0.5)]) is None


def test_loss_plateau_stops_when_the_loss_gains_too_little_over_its_window() -> None:
    assert stops_at(detector("loss-plateau:window=2,min_gain=0.1"), losses(1.0, 0.8, 0.6, 0.55, 0.52)) == 5
    assert stops_at(detector("loss-plateau:window=1,min_gain=0.1"), losses(1.0, 0.8, 0.75)) == 3


def test_loss_plateau_passes_over_evals_without_a_loss_and_never_looks_at_the_score() -> None:
    rule = detector("loss-plateau:window=1,min_gain=0.1")

    assert stops_at(rule, losses(1.0, None, 0.8, None, 0.79)) == 5
    assert stops_at(rule, scores(0.9, 0.1, 0.0)) is None


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_stops_after_that_many_evals_without_a_new_best(patience: int) -> None:
    falls = scores(0.5, 0.9, 0.8, 0.85, 0.9, 0.7)

    assert stops_at(detector(f"patience:patience={patience}"), falls) == 2 + patience


def test_a_new_best_starts_patience_anew_and_min_delta_says_what_counts_as_one() -> None:
    climbs = scores(0.50, 0.49, 0.51, 0.50, 0.52, 0.51)

    assert stops_at(detector("patience:patience=2"), climbs) is None
    assert stops_at(detector("patience:patience=2,min_delta=0.05"), climbs) == 3


def test_patience_follows_the_direction_of_the_score() -> None:
    assert stops_at(detector("patience:patience=2", Mode.MIN), scores(0.5, 0.6, 0.7)) == 3
    assert stops_at(detector("patience:patience=2", Mode.MIN), scores(0.5, 0.4, 0.3)) is None


@given(st.lists(st.sampled_from([nan, inf, -inf]), min_size=1, max_size=4))
def test_scores_that_are_no_scores_change_nothing_for_patience(junk: list[float]) -> None:
    rule = detector("patience:patience=1")
    state = rule.start(JOB)
    state, _ = rule.step(state, Eval(1, 0.5))

    for value in junk:
        assert rule.step(state, Eval(2, value)) == (state, KeepGoing())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("patience:patience=0", "patience must be at least 1"),
        ("patience:min_delta=-1", "min_delta must be finite"),
        ("loss-plateau:window=0", "window must be at least 1"),
        ("elapsed-fraction:share=0", "share must be above 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_words(spec: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        detector(spec)


@pytest.mark.parametrize("spec", ["patience:patience=5,min_delta=0.1", "loss-plateau:window=3", "elapsed-fraction"])
def test_a_rules_text_makes_the_same_rule(spec: str) -> None:
    assert detector(detector(spec).spec) == detector(spec)


@pytest.mark.parametrize("share", ["inf", "nan", "-1"])
def test_a_share_that_no_job_can_reach_is_refused(share: str) -> None:
    with pytest.raises(ValueError, match=f"share must be above 0, not {share}"):
        detector(f"elapsed-fraction:share={share}")


def test_each_rule_says_why_it_stops() -> None:
    late = fold(detector("elapsed-fraction:share=0.3"), JOB, [Eval(1, 0.5, elapsed_s=300.0)])
    flat = fold(detector("loss-plateau:window=1,min_gain=0.1"), JOB, losses(1.0, 0.95))
    worse = fold(detector("patience:patience=2"), JOB, scores(3, 2, 1))

    assert late == (Stop("30% of the estimated duration is over"),)
    assert flat[-1] == Stop("the training loss fell by less than 0.1 over 1 evals")
    assert worse == (KeepGoing(), Declining(1, 2), Stop("no better eval score for 2 evals", 2))


def test_a_loss_that_gains_just_enough_goes_on() -> None:
    rule = detector("loss-plateau:window=2,min_gain=0.5")

    assert stops_at(rule, losses(2.0, 1.5, 1.5, 1.0)) is None
    assert stops_at(rule, losses(2.0, 1.6, 1.6)) == 3
    assert stops_at(rule, losses(2.0, 1.9, 1.4, 1.3)) is None, "the first and the last of the window count"


def test_the_losses_that_one_eval_adds_to_a_state_are_none_of_those_that_another_adds_to_it() -> None:
    rule = detector("loss-plateau:window=1,min_gain=0.1")
    (first, falls, flat, on) = losses(1.0, 0.5, 0.95, 0.45)
    state, _ = rule.step(rule.start(JOB), first)
    fallen, _ = rule.step(state, falls)

    assert isinstance(rule.step(state, flat)[1], Stop)
    assert isinstance(rule.step(fallen, on)[1], Stop)


@pytest.mark.parametrize("min_delta", ["inf", "nan"])
def test_a_margin_that_nothing_can_pass_is_refused(min_delta: str) -> None:
    for rule in ("patience", "k-declines", "smoothed-declines"):
        with pytest.raises(ValueError, match="must be finite and not negative"):
            detector(f"{rule}:min_delta={min_delta}")


def test_a_gain_of_exactly_min_delta_is_no_new_best() -> None:
    assert stops_at(detector("patience:patience=1,min_delta=0.5"), scores(1.0, 1.5)) == 2
    assert stops_at(detector("patience:patience=1,min_delta=0.5"), scores(1.0, 1.75)) is None


def test_patience_is_named_with_its_margin_only_where_it_has_one() -> None:
    assert detector("patience").spec == "patience:patience=3"
    assert detector("patience:min_delta=0.25").spec == "patience:patience=3,min_delta=0.25"


def test_a_run_that_begins_with_no_score_has_waited_for_nothing() -> None:
    rule = detector("patience:patience=1")

    assert rule.step(rule.start(JOB), Eval(1, nan))[1] == KeepGoing()
