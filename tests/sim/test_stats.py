"""Student's t against tabulated values."""

from math import inf

import pytest
from evalstopd_sim.stats import estimate, incomplete_beta, t_quantile, t_two_sided


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.7062), (2, 4.30265), (5, 2.57058), (19, 2.09302), (60, 2.00030), (1000, 1.96234)]
)
def test_quantiles_agree_with_the_tables(freedom: int, t: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(t, abs=1e-4)
    assert t_two_sided(t, freedom) == pytest.approx(0.05, abs=1e-5)


def test_one_degree_of_freedom_is_the_cauchy_distribution() -> None:
    assert t_two_sided(1.0, 1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("a", "b", "x", "value"), [(1, 1, 0.3, 0.3), (2, 1, 0.5, 0.25), (0.5, 0.5, 0.5, 0.5), (2, 3, 0.4, 0.5248)]
)
def test_the_incomplete_beta_function_agrees_with_closed_forms(a: float, b: float, x: float, value: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(value, abs=1e-10)


def test_an_estimate_is_the_textbooks() -> None:
    """Ten paired differences of Student's own sleep data: mean 1.58, t = 4.0621, p = .002833."""
    found = estimate([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])

    assert found.mean == pytest.approx(1.58)
    assert (found.low, found.high) == (pytest.approx(0.7001142, abs=1e-6), pytest.approx(2.4598858, abs=1e-6))
    assert found.p_value == pytest.approx(0.00283289, abs=1e-7)


def test_one_value_has_no_interval_and_equal_values_a_point() -> None:
    assert (estimate([3.0]).low, estimate([3.0]).p_value) == (-inf, None)
    assert (estimate([3.0, 3.0]).low, estimate([3.0, 3.0]).p_value) == (3.0, 0.0)
    assert estimate([0.0, 0.0]).p_value == 1.0
