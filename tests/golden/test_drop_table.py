"""Drop test and k = 2 side by side on preset `paper` at four noises: every column of the table in docs/rules.md."""

from dataclasses import dataclass, replace
from functools import cache

import pytest
from evalstopd_sim.arms import Arm, Setting
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.pool import Task, run_task
from evalstopd_sim.presets import PRESETS, Noise
from evalstopd_sim.rows import Row, rows

ARMS = (Arm("srtf-est"), Arm("srtf-est", "k-declines:k=2"), Arm("srtf-est", "drop-test-paper"))
SEEDS = 40


@dataclass(frozen=True)
class Line:
    """What must come out, in per cent: false stops of healthy RLHF runs, precision, recall, change of waste W3."""

    fpr: float
    precision: float
    recall: float
    waste: float


TABLE = {
    (0.025, 1): Line(2.4, 98.4, 99.9, -21.0),
    (0.05, 1): Line(11.6, 92.6, 97.0, -4.8),
    (0.08, 1): Line(21.1, 86.5, 90.3, 9.5),
    (0.12, 1): Line(29.9, 80.5, 82.5, 18.6),
    (0.025, 2): Line(0.1, 99.9, 100.0, -37.2),
    (0.05, 2): Line(0.3, 99.8, 99.6, -21.3),
    (0.08, 2): Line(0.7, 99.5, 91.5, -10.3),
    (0.12, 2): Line(1.5, 98.6, 70.2, -4.4),
}


@cache
def measured(sigma: float) -> list[Row]:
    world = Setting(replace(PRESETS["paper"], noise=Noise((sigma,))), 500, ClusterOptions(64))
    return rows(ARMS, [run_task(Task(world, seed, ARMS)) for seed in range(SEEDS)])


@pytest.mark.parametrize(("sigma", "arm"), TABLE)
def test_every_column_comes_out(sigma: float, arm: int) -> None:
    """Within 1 point of false stops and precision, 3 of recall and waste."""
    row, line = measured(sigma)[arm], TABLE[sigma, arm]
    found = {name: 100 * (row.means[name] or 0.0) for name in ("fpr_healthy_rlhf", "precision", "recall")}

    assert found["fpr_healthy_rlhf"] == pytest.approx(line.fpr, abs=1.0)
    assert found["precision"] == pytest.approx(line.precision, abs=1.0)
    assert found["recall"] == pytest.approx(line.recall, abs=3.0)
    assert row.changes["w3_gpu_h"].mean == pytest.approx(line.waste, abs=3.0)
