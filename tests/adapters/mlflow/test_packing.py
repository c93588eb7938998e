"""Packing of series into calls, and how long a way that failed is left alone."""

from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.mlflow.footing import Footing
from evalstopd.adapters.mlflow.packing import expected, packed
from evalstopd.ports import RunQuery

SERIES = st.dictionaries(
    st.builds(RunQuery, st.text("abc", min_size=1, max_size=4), st.sampled_from(["m", "n"])),
    st.none() | st.integers(0, 30_000),
    max_size=60,
)


@given(SERIES, st.integers(1, 20), st.integers(1, 40_000))
def test_every_series_is_in_one_chunk_of_its_metric_that_keeps_to_the_limits(
    held: dict[RunQuery, int | None], runs: int, budget: int
):
    known = {each: size for each, size in held.items() if size is not None}
    chunks = packed(list(held), known, runs, budget)
    assert sorted((e.metric, e.run_id) for chunk in chunks for e in chunk) == sorted((e.metric, e.run_id) for e in held)
    for chunk in chunks:
        assert 1 <= len(chunk) <= runs
        assert len({each.metric for each in chunk}) == 1
        assert len(chunk) == 1 or sum(expected(known.get(each)) for each in chunk) <= budget


def test_a_hundred_runs_never_read_fit_into_one_call():
    assert len(packed([RunQuery(f"r{n}", "m") for n in range(100)], {}, 100, 20_000)) == 1


def test_the_wait_doubles_up_to_an_hour_and_a_success_ends_it():
    at = [0.0]
    footing = Footing(lambda: at[0])
    waits = []
    for _ in range(9):
        footing.failed()
        began = at[0]
        while not footing.holds:
            at[0] += 1
        waits.append(at[0] - began)
    assert waits == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]
    assert not footing.proven
    footing.worked()
    footing.failed()
    assert (footing.holds, footing.proven) == (False, False)
    at[0] += 60
    assert footing.holds
