"""Values that independent simulators agree on, on one trace of 1,000 jobs and 64 GPUs."""

import pytest
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.options import ClusterOptions, HeadOfLine
from evalstopd_sim.tally import Tally
from evalstopd_sim.traces import golden_jobs

from evalstopd.core.policies import policy


def run(spec: str, head: HeadOfLine, **options: float) -> Tally:
    chosen = {"preemption_overhead_s": 0.0} | options
    return drive(golden_jobs(), Scheduler(policy(spec)), ClusterOptions(64, head, **chosen))


def mean_jct_s(tally: Tally) -> float:
    return round(sum(tally.jct_s) / len(tally.jct_s), 1)


@pytest.mark.parametrize(
    ("spec", "head", "expected"),
    [
        ("fifo", HeadOfLine.STRICT, 3304.0),
        ("fifo", HeadOfLine.SKIP, 3064.7),
        ("sjf-est", HeadOfLine.STRICT, 3092.3),
        ("sjf-est", HeadOfLine.SKIP, 3010.5),
    ],
)
def test_policies_without_preemption_agree_with_the_published_simulators(
    spec: str, head: HeadOfLine, expected: float
) -> None:
    assert expected == mean_jct_s(run(spec, head))


@pytest.mark.parametrize("spec", ["srtf-est", "srtf-est:floor=0"])
def test_srtf_agrees_to_the_last_digit_and_preempts_as_often(spec: str) -> None:
    tally = run(spec, HeadOfLine.SKIP)

    assert (mean_jct_s(tally), tally.preemptions) == (2976.0, 386)


def test_las_agrees_with_the_public_tiresias_simulator() -> None:
    tally = run("las", HeadOfLine.SKIP)

    assert mean_jct_s(tally) == pytest.approx(3068.1, rel=0.01)
    assert tally.preemptions == pytest.approx(314, rel=0.05)


def test_consolidated_placement_agrees_with_lucid() -> None:
    """Nodes of 8 double FIFO's JCT, as another simulator's `consolidate` placement does to the last digit."""
    assert mean_jct_s(run("fifo", HeadOfLine.STRICT, gpus_per_node=8)) == 6774.3


def test_overhead_makes_preemption_dearer() -> None:
    free, paid = (run("srtf-est", HeadOfLine.SKIP, preemption_overhead_s=cost) for cost in (0.0, 120.0))

    assert free.overhead == 0
    assert paid.overhead > 0
    assert mean_jct_s(paid) > mean_jct_s(free)


def test_no_two_policies_give_the_same_figures_on_a_loaded_trace() -> None:
    specs = ("fifo", "sjf-est", "srtf-est", "las")
    figures = {(mean_jct_s(run(spec, head))) for spec in specs for head in HeadOfLine}

    assert len(figures) == 2 * len(specs)


def test_every_job_of_the_trace_is_over_exactly_once() -> None:
    assert run("srtf-est", HeadOfLine.SKIP).over == 1000
