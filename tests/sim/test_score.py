"""Scores on worlds small enough to be worked out by hand. GPU-hours throughout."""

import pytest
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.rule import NO_RULE, Rule, Wrapper
from evalstopd_sim.score import Scores, kept_mean_s, percentile, scores
from evalstopd_sim.tally import Tally
from evalstopd_sim.truth import TrueJob

from evalstopd.core.detectors import KDeclines
from evalstopd.core.policies import policy

from .worlds import job

HOUR_S = 3600.0
MARKS = tuple(HOUR_S * i for i in range(1, 11))
FALLS = (0.5, 0.7, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)


def rlhf(name: str, scores_: tuple[float, ...], peak_h: float | None, levels: tuple[float, ...] = ()) -> TrueJob:
    hidden = {} if peak_h is None else {"hacking": True, "peak_s": peak_h * HOUR_S}
    return job(name, 0, 4, 10 * HOUR_S, marks=MARKS, scores=scores_, levels=levels or scores_, **hidden)


def run(jobs: list[TrueJob], rule: Rule = NO_RULE, base: str = "fifo") -> Tally:
    return drive(jobs, Scheduler(policy(base), rule), ClusterOptions(16))


def two_declines(*jobs: TrueJob) -> Scores:
    return scores(run(list(jobs), Wrapper(KDeclines(2))))


def test_a_hacking_job_alone_wastes_what_it_runs_past_its_peak() -> None:
    found = scores(run([rlhf("a", FALLS, 3.0)]))

    assert (found.w1_gpu_h, found.w2_gpu_h, found.w3_gpu_h, found.w4_gpu_h) == (28.0, 28.0, 28.0, 0.0)
    assert (found.precision, found.recall, found.saved_share_past_peak) == (None, 0.0, 0.0)


def test_a_stop_two_evals_after_the_peak_saves_the_rest() -> None:
    found = two_declines(rlhf("a", FALLS, 3.0))

    assert found.w1_gpu_h == 2 * 4
    assert found.saved_share_past_peak == pytest.approx(5 / 7)
    assert (found.precision, found.recall, found.recall_before_last_eval, found.f1) == (1.0, 1.0, 1.0, 1.0)
    assert (found.delay_evals, found.delay_h) == (2.0, 2.0)
    assert (found.regret_best, found.regret_k_before) == (0.0, 0.0)


def test_a_stop_at_the_last_eval_is_caught_but_not_before_it() -> None:
    late = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.75, 0.7)

    found = two_declines(rlhf("a", late, 8.0))

    assert (found.recall, found.recall_before_last_eval, found.saved_share_past_peak) == (1.0, 0.0, 0.0)


def test_a_false_stop_costs_all_the_hours_of_the_job_and_the_score_it_would_have_reached() -> None:
    dips = (0.5, 0.4, 0.3, 0.6, 0.7, 0.8, 0.8, 0.9, 0.9, 0.95)

    found = two_declines(rlhf("a", dips, None), rlhf("b", FALLS, 3.0))

    assert (found.false_stop_gpu_h, found.w3_gpu_h - found.w2_gpu_h) == (12.0, 12.0)
    assert found.false_stop_lost_level == pytest.approx(0.45)
    assert (found.precision, found.fpr, found.fpr_healthy_rlhf) == (0.5, 1.0, 1.0)


def test_both_false_positive_rates_are_over_their_own_denominators() -> None:
    dips = (0.5, 0.4, 0.3, *FALLS[3:])

    found = two_declines(rlhf("a", dips, None), job("b", 0, 1, 10.0, kind="lora"), job("c", 0, 1, 10.0, kind="dpo"))

    assert (found.fpr, found.fpr_healthy_rlhf) == (pytest.approx(1 / 3), 1.0)


def test_a_hacking_job_stopped_before_its_peak_counts_as_early() -> None:
    dips = (0.5, 0.4, 0.3, 0.6, 0.7, 0.8, 0.9, 0.7, 0.6, 0.5)

    found = two_declines(rlhf("a", dips, 7.0))

    assert (found.w4_gpu_h, found.w4_jobs, found.w1_gpu_h, found.delay_evals) == (12.0, 1, 0.0, 0.0)


def test_the_kept_checkpoint_is_judged_by_its_true_level() -> None:
    """A lucky eval looks best; the best stretch and the eval k before the trigger are judged as well."""
    seen = (0.5, 0.9, 0.6, 0.7, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2)
    level = (0.5, 0.55, 0.6, 0.7, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)

    found = two_declines(rlhf("a", seen, 4.5, level))

    assert found.regret_best == pytest.approx(0.7 - 0.55)
    assert found.regret_k_before == pytest.approx(0.0)
    assert found.regret_best3 == pytest.approx(0.7 - 0.6)


def test_the_jct_of_jobs_not_stopped_is_compared_with_the_same_jobs_of_the_base() -> None:
    jobs = [rlhf("a", FALLS, 3.0), job("b", 0, 16, HOUR_S)]
    base, treated = run(jobs), run(jobs, Wrapper(KDeclines(2)))

    assert scores(treated).jct_kept_mean_s == 6 * HOUR_S
    assert kept_mean_s(base, treated) == 11 * HOUR_S


def test_utilisation_and_makespan_are_those_of_the_whole_run() -> None:
    found = scores(run([job("a", 0, 16, HOUR_S), job("b", 0, 8, HOUR_S)]))

    assert (found.makespan_s, found.utilisation) == (2 * HOUR_S, 0.75)


@pytest.mark.parametrize(("p", "expected"), [(0.0, 1.0), (0.5, 2.5), (0.95, 3.85), (1.0, 4.0)])
def test_percentiles_lie_between_neighbours(p: float, expected: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], p) == pytest.approx(expected)


def test_an_empty_run_has_no_jct() -> None:
    assert scores(run([])).jct_mean_s is None
