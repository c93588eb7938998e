"""Estimates from what may be seen."""

from math import inf

import pytest

from evalstopd.core.estimate import remaining_s, share_done, speed_up, total_s
from evalstopd.core.model import JobView


@pytest.mark.parametrize(
    ("attained", "left"), [(0.0, 1000.0), (400.0, 600.0), (979.0, 21.0), (985.0, 20.0), (9e9, 20.0)]
)
def test_the_remaining_time_never_falls_below_two_per_cent_of_the_estimate(attained: float, left: float) -> None:
    assert remaining_s(JobView("1", 0.0, 1, estimate_s=1000.0, attained_s=attained)) == left


def test_a_job_without_an_estimate_counts_as_endless() -> None:
    job = JobView("1", 0.0, 1, attained_s=50.0)

    assert (total_s(job), remaining_s(job), share_done(job)) == (inf, inf, 0.0)


def test_the_share_done_is_cut_at_one() -> None:
    assert share_done(JobView("1", 0.0, 1, estimate_s=100.0, attained_s=250.0)) == 1.0
    assert share_done(JobView("1", 0.0, 1, estimate_s=100.0, attained_s=25.0)) == 0.25


def test_speed_grows_with_gpus_and_is_linear_without_a_cost_of_scaling() -> None:
    assert speed_up(0) == 0.0
    assert speed_up(1, 0.3) == 1.0
    assert speed_up(8, 0.0) == 8.0
    assert speed_up(8, 0.1) == pytest.approx(8 / 1.7)


def test_of_no_time_at_all_everything_is_done_and_less_than_a_second_is_some() -> None:
    assert share_done(JobView("1", 0.0, 1, estimate_s=0.0, attained_s=5.0)) == 1.0
    assert share_done(JobView("1", 0.0, 1, estimate_s=0.5, attained_s=0.25)) == 0.5
    assert remaining_s(JobView("1", 0.0, 1, estimate_s=1000.0, attained_s=999.0), 0.5) == 500.0
