"""Placement on nodes."""

from evalstopd_sim.options import ClusterOptions, HeadOfLine
from hypothesis import given
from hypothesis import strategies as st

from .worlds import decisions, job

NODES = ClusterOptions(16, HeadOfLine.SKIP, 0.0, gpus_per_node=8)


def starts(jobs: list, base: str = "fifo", options: ClusterOptions = NODES) -> list[tuple[float, str]]:
    return [(d.at_s, d.job_id) for d in decisions(jobs, base, options=options) if d.verb == "start"]


def test_a_job_waits_for_one_node_although_enough_gpus_are_free_on_two() -> None:
    jobs = [job("a", 0, 5), job("b", 0, 5), job("c", 1, 6)]

    assert starts(jobs)[-1] == (100.0, "c")
    assert starts(jobs, options=ClusterOptions(16, preemption_overhead_s=0.0))[-1] == (1.0, "c")


def test_a_job_goes_to_the_fullest_node_it_fits_on() -> None:
    """Packing the small one beside the other leaves a whole node for the large one."""
    jobs = [job("a", 0, 4), job("b", 1, 4), job("c", 2, 8)]

    assert starts(jobs)[-1] == (2.0, "c")


def test_a_large_job_takes_whole_nodes_and_a_rest() -> None:
    jobs = [job("a", 0, 4), job("b", 1, 12), job("c", 2, 5)]

    assert starts(jobs) == [(0.0, "a"), (1.0, "b"), (101.0, "c")]


def test_a_better_ranked_job_takes_a_node_from_a_worse_one() -> None:
    jobs = [job("a", 0, 8, 1000.0), job("b", 0, 8, 2000.0), job("c", 5, 8, 10.0)]

    found = decisions(jobs, "srtf-est", options=NODES)

    assert [(d.verb, d.job_id) for d in found if d.at_s == 5.0] == [("yield", "b"), ("start", "c")]


jobs_of_all_sizes = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 16), st.integers(1, 60)), min_size=1, max_size=12
)


@given(rows=jobs_of_all_sizes, base=st.sampled_from(["fifo", "sjf-est", "srtf-est", "las"]))
def test_one_large_node_is_the_same_as_slots(rows: list[tuple[int, int, int]], base: str) -> None:
    jobs = [job(f"{i:02d}", float(s), g, float(d)) for i, (s, g, d) in enumerate(sorted(rows))]
    one_node = ClusterOptions(16, HeadOfLine.SKIP, 0.0, gpus_per_node=16)

    assert starts(jobs, base, one_node) == starts(jobs, base, ClusterOptions(16, HeadOfLine.SKIP, 0.0))
