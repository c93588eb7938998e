"""Workloads: the numbers of a preset, seeds, and streams that do not disturb each other."""

from dataclasses import replace
from math import inf, isfinite

import pytest
from evalstopd_sim.curves import Fate, clip, gao_level, paper_level, real_level, rise
from evalstopd_sim.presets import PRESETS, Noise
from evalstopd_sim.streams import Draw, stream
from evalstopd_sim.truth import TrueJob
from evalstopd_sim.workload import Workload, cancel_odds, quantile

from evalstopd.errors import Misconfigured

PAPER = PRESETS["paper"]


def deal(preset=PAPER, seed: int = 1, count: int = 4000) -> list[TrueJob]:
    return list(Workload(preset, 64, seed).jobs(count))


def test_same_seed_same_jobs_and_other_seed_other_jobs() -> None:
    assert deal(count=50) == deal(count=50)
    assert deal(count=50) != deal(seed=2, count=50)


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_presets_shares_means_and_load_come_out(name: str) -> None:
    preset = PRESETS[name]
    jobs = deal(preset, count=8000)
    rlhf = [job for job in jobs if job.kind == "rlhf"]

    for kind in preset.kinds:
        found = [job for job in jobs if job.kind == kind.name]
        assert len(found) / len(jobs) == pytest.approx(kind.share, abs=0.02)
        assert sum(job.duration_s for job in found) / len(found) == pytest.approx(kind.mean_h * 3600, rel=0.06)
        assert {job.gpus for job in found} == set(kind.gpus)
    assert sum(job.hacking for job in rlhf) / len(rlhf) == pytest.approx(preset.hacking, abs=0.04)
    load = sum(job.gpus * job.duration_s for job in jobs) / 64 / jobs[-1].submit_s
    assert load == pytest.approx(preset.load, rel=0.08)


@pytest.mark.parametrize("name", list(PRESETS))
@pytest.mark.parametrize("every_s", [None, 1800.0])
def test_evals_are_in_order_within_the_job_and_finite(name: str, every_s: float | None) -> None:
    for job in deal(replace(PRESETS[name], every_s=every_s), count=200):
        assert list(job.marks) == sorted(set(job.marks))
        assert all(0 < mark <= job.duration_s for mark in job.marks)
        assert len(job.marks) == len(job.scores) == len(job.levels)
        assert all(isfinite(score) and 0 <= score <= 1 for score in job.scores)


def test_more_noise_changes_the_scores_and_nothing_else() -> None:
    for quiet, loud in zip(deal(count=100), deal(replace(PAPER, noise=Noise((0.1,))), count=100), strict=True):
        assert loud._replace(scores=quiet.scores, stderr=quiet.stderr) == quiet


def test_the_noise_comes_from_its_own_stream() -> None:
    first = next(job for job in deal(count=20) if job.kind == "rlhf")
    draws = stream(1, Draw.NOISE)

    assert first.scores == tuple(clip(level + draws.gauss(0.0, 0.025)) for level in first.levels)


def test_a_higher_base_rate_turns_jobs_and_moves_none() -> None:
    few, many = (deal(replace(PAPER, hacking=share), count=300) for share in (0.2, 0.8))

    assert [(a.submit_s, a.gpus, a.duration_s) for a in few] == [(b.submit_s, b.gpus, b.duration_s) for b in many]
    assert all(b.hacking for a, b in zip(few, many, strict=True) if a.hacking)


def test_peaks_of_preset_paper_lie_where_the_paper_draws_them() -> None:
    peaks = [job.peak_s / job.duration_s for job in deal() if job.hacking]

    assert min(peaks) >= 0.55
    assert max(peaks) <= 0.75
    assert all(job.peak_s == inf for job in deal(count=200) if not job.hacking)


def test_owners_cancels_end_the_share_of_gpu_time_that_was_asked_for() -> None:
    """The share that ends cancelled is 61 to 66 per cent on the clusters that publish it."""
    jobs = deal(replace(PAPER, cancelled=0.64))

    used = [(job.gpus * min(job.duration_s, job.cancel_s), job.cancel_s < inf) for job in jobs]
    assert sum(u for u, cut in used if cut) / sum(u for u, _ in used) == pytest.approx(0.64, abs=0.03)
    assert cancel_odds(0.0) == 0.0


def test_estimates_are_exact_if_asked_for() -> None:
    assert all(job.estimate_s == job.duration_s for job in deal(replace(PAPER, estimate_sd=None), count=50))


def test_a_cluster_too_small_for_the_preset_is_refused_in_words() -> None:
    with pytest.raises(Misconfigured, match="preset paper has jobs of 8 GPUs, the cluster has 4"):
        next(Workload(PAPER, 4, 1).jobs(1))


def test_the_papers_curve_rises_to_its_peak_and_falls_by_its_depth() -> None:
    fate = Fate(0.6, 0.4)

    assert paper_level(0.5, fate) == rise(0.5)
    assert paper_level(1.0, fate) == pytest.approx(rise(0.6) - 0.4)
    assert rise(1.0) == pytest.approx(0.95)


@pytest.mark.parametrize(("peak", "fall"), [(0.55, 0.26), (0.65, 0.125), (0.75, 0.046)])
def test_gao_curves_fall_by_a_few_per_cent_of_the_gain(peak: float, fall: float) -> None:
    """R = d (alpha - beta ln d): in units of the peak x (1 - ln x), so the fall follows from the peak's place."""
    fate = Fate(peak, 0.0)

    assert gao_level(peak, fate) == pytest.approx(0.95)
    assert (gao_level(peak, fate) - gao_level(1.0, fate)) / 0.8 == pytest.approx(fall, abs=0.01)


def test_healthy_gao_and_real_curves_never_fall() -> None:
    for level in (gao_level, real_level):
        points = [level(i / 20, Fate(None, 0.5)) for i in range(1, 21)]
        assert points == sorted(points)


@pytest.mark.parametrize(("p", "expected"), [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.75, 5.0), (0.999, 6.992)])
def test_quantiles_are_linear_between_their_knots(p: float, expected: float) -> None:
    assert quantile((1.0, 3.0, 7.0), p) == pytest.approx(expected)
