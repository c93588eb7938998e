"""The published figures with preset `paper`, seeds 0 to 19, in bands: fitted, so a match proves possibility only."""

from dataclasses import replace
from functools import cache

import pytest
from evalstopd_sim.arms import Arm, Setting
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.pool import Task, run_task
from evalstopd_sim.presets import PRESETS, Noise, Preset
from evalstopd_sim.rows import Row, rows

PAPER = PRESETS["paper"]
K2 = "k-declines:k=2"


@cache
def measured(base: str, rule: str, preset: Preset = PAPER) -> Row:
    world, arms = Setting(preset, 500, ClusterOptions(64)), (Arm(base), Arm(base, rule))
    return rows(arms, [run_task(Task(world, seed, arms)) for seed in range(20)])[1]


def percent(row: Row, score: str) -> float:
    value = row.means[score]
    assert value is not None
    return 100 * value


def test_evalstop_over_srtf_gains_what_is_published() -> None:
    row = measured("srtf-est", K2)

    assert row.changes["jct_mean_s"].mean == pytest.approx(-9.4, abs=2.0)
    assert row.changes["w3_gpu_h"].mean == pytest.approx(-21.8, abs=3.0)
    assert row.changes["jct_mean_s"].p_value < 0.05
    assert row.changes["w3_gpu_h"].p_value < 0.05


def test_evalstop_detects_as_well_as_published() -> None:
    row = measured("srtf-est", K2)

    assert percent(row, "precision") == pytest.approx(98.3, abs=1.0)
    assert percent(row, "recall") >= 98.5
    assert percent(row, "fpr") == pytest.approx(1.5, abs=0.5)
    assert percent(row, "fpr_healthy_rlhf") == pytest.approx(2.4, abs=0.8)


def test_a_third_of_the_detections_come_at_the_last_eval_and_save_nothing() -> None:
    assert percent(measured("srtf-est", K2), "recall_before_last_eval") == pytest.approx(63, abs=4)


@pytest.mark.parametrize(("sigma", "low", "high"), [(0.01, 99.5, 100.0), (0.05, 91.0, 95.0), (0.12, 79.0, 84.0)])
def test_precision_falls_with_noise_as_published(sigma: float, low: float, high: float) -> None:
    assert low <= percent(measured("srtf-est", K2, replace(PAPER, noise=Noise((sigma,)))), "precision") <= high


@pytest.mark.parametrize("share", [0.2, 0.4, 0.8])
def test_precision_stays_high_at_every_base_rate(share: float) -> None:
    assert percent(measured("srtf-est", K2, replace(PAPER, hacking=share)), "precision") >= 89


def test_stop_at_is_blind_to_labels() -> None:
    row = measured("srtf-est", "stop-at-oracle")

    assert 57 <= percent(row, "precision") <= 62
    assert 61 <= percent(row, "fpr") <= 66
    assert percent(row, "recall") == 100


def test_stop_at_on_estimates_is_another_rule() -> None:
    row = measured("srtf-est", "elapsed-fraction")

    assert percent(row, "recall") == pytest.approx(86, abs=2)
    assert percent(row, "fpr") == pytest.approx(53, abs=3)


def test_loss_plateau_recalls_as_little_as_published() -> None:
    row = measured("srtf-est", "loss-plateau")

    assert percent(row, "recall") == pytest.approx(38, abs=3)
    assert percent(row, "fpr") == pytest.approx(25, abs=3)


@pytest.mark.parametrize("base", ["fifo", "sjf-est", "srtf-est", "loss-aware"])
def test_evalstop_shortens_the_jct_of_every_base(base: str) -> None:
    assert 7 <= -measured(base, K2).changes["jct_mean_s"].mean <= 26


def test_two_declines_are_best_by_net_waste_and_f1() -> None:
    found = {k: measured("srtf-est", f"k-declines:k={k}") for k in range(1, 6)}

    assert min(found, key=lambda k: found[k].changes["w3_gpu_h"].mean) == 2
    assert max(found, key=lambda k: found[k].means["f1"] or 0.0) == 2


@pytest.mark.parametrize(("evals", "fpr"), [(6, 0.2), (8, 1.45), (10, 4.0), (20, 26.5)])
def test_more_evals_make_two_declines_worse(evals: int, fpr: float) -> None:
    row = measured("srtf-est", K2, replace(PAPER, evals=(evals,)))

    assert percent(row, "fpr") == pytest.approx(fpr, abs=max(0.3, 0.15 * fpr))


def test_putting_a_job_last_lets_it_starve_and_saves_nothing() -> None:
    row = measured("srtf-est", f"put-last+{K2}")

    assert row.changes["jct_mean_s"].mean > 10
    assert row.changes["w1_gpu_h"].mean == pytest.approx(0.0, abs=0.5)
