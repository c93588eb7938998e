"""Rows over seeds: means where defined, changes against the arm's own base, seed by seed."""

import pytest
from evalstopd_sim.arms import Arm, Setting
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.pool import Task, run_task
from evalstopd_sim.presets import PRESETS
from evalstopd_sim.rows import as_json, rows

K2 = "k-declines:k=2"
ARMS = (Arm("fifo"), Arm("fifo", K2), Arm("las"), Arm("las", K2))
WORLD = Setting(PRESETS["paper"], 80, ClusterOptions(64))
SAMPLES = [run_task(Task(WORLD, seed, ARMS)) for seed in range(3)]


def jct(place: int) -> list[float]:
    return [samples[place].scores.jct_mean_s or 0.0 for samples in SAMPLES]


@pytest.mark.parametrize("place", [1, 3])
def test_a_change_is_the_mean_of_the_changes_against_the_same_policy_alone(place: int) -> None:
    row = rows(ARMS, SAMPLES)[place]

    changes = [100 * (after / before - 1) for before, after in zip(jct(place - 1), jct(place), strict=True)]
    assert row.changes["jct_mean_s"].mean == pytest.approx(sum(changes) / 3)
    assert row.changes["jct_mean_s"].low < row.changes["jct_mean_s"].mean < row.changes["jct_mean_s"].high


def test_a_base_alone_has_no_changes_and_an_arm_without_its_base_neither() -> None:
    assert rows(ARMS, SAMPLES)[0].changes == {}
    assert rows((ARMS[1],), [(samples[1],) for samples in SAMPLES])[0].changes == {}


def test_means_are_over_the_seeds_where_a_score_is_defined() -> None:
    base, treated = rows(ARMS, SAMPLES)[:2]

    assert base.means["precision"] is None
    assert treated.means["jct_mean_s"] == pytest.approx(sum(jct(1)) / 3)


def test_a_row_becomes_plain_data_without_infinities() -> None:
    one_seed = rows(ARMS[:2], [samples[:2] for samples in SAMPLES[:1]])[1]

    shown = as_json(one_seed)

    assert shown["jobs"] == 80
    assert shown["change_percent"]["jct_mean_s"]["ci95_low"] is None
