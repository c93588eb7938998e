"""Non-interference: worlds that look the same get the same decisions, whatever is true behind them."""

from dataclasses import replace
from math import inf

import pytest
from evalstopd_sim.elastic import drive_elastic
from evalstopd_sim.journal import Decision
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.presets import PRESETS
from evalstopd_sim.prior import PutLast
from evalstopd_sim.rule import Act, Rule, Wrapper
from evalstopd_sim.truth import TrueJob
from evalstopd_sim.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.detectors import detector
from evalstopd.core.policies import elastic, policy

from .worlds import decisions

EVERY_S = 1800.0
WALL = replace(PRESETS["paper"], every_s=EVERY_S)
BASES = ["fifo", "sjf-est", "srtf-est", "loss-aware", "las"]
RULES = [
    Wrapper(detector("k-declines:k=2")),
    Wrapper(detector("elapsed-fraction:share=0.3")),
    Wrapper(detector("loss-plateau")),
    Wrapper(detector("patience")),
    Wrapper(detector("drop-test-safe")),
    Wrapper(detector("recommended")),
    Wrapper(detector("k-declines:k=2"), Act.PUT_LAST),
]


def decided(jobs: list[TrueJob], base: str, rule: Rule) -> list[Decision]:
    chosen = policy(base)
    wrapped = PutLast(chosen, 1) if rule.act is Act.PUT_LAST else chosen
    return decisions(jobs, wrapped, rule, ClusterOptions(16))


def other_label(job: TrueJob) -> TrueJob:
    """Return a job that looks the same and is the opposite: label, peak and levels exchanged."""
    peak_s = inf if job.hacking else job.duration_s / 3
    return job._replace(hacking=not job.hacking, peak_s=peak_s, levels=tuple(1 - level for level in job.levels))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_hidden_labels_peaks_and_levels_change_no_decision(base: str, rule: Rule) -> None:
    jobs = list(Workload(PRESETS["paper"], 16, 3).jobs(40))

    assert decided(jobs, base, rule) == decided([other_label(job) for job in jobs], base, rule)


@pytest.mark.parametrize("base", ["goodput", "slaq"])
def test_hidden_labels_change_nothing_for_elastic_policies(base: str) -> None:
    jobs = list(Workload(PRESETS["paper"], 16, 3).jobs(30))

    seen, other = (
        drive_elastic(world, elastic(base), RULES[0], ClusterOptions(16))
        for world in (jobs, [other_label(job) for job in jobs])
    )

    assert seen.jct_s == other.jct_s
    assert seen.stopped == other.stopped


def longer(job: TrueJob, factor: float) -> TrueJob:
    """Return a job that looks the same up to its end, and goes on: the same evals and losses at the same times."""
    rate = job.loss_rate * factor
    return job._replace(duration_s=job.duration_s * factor, loss_rate=rate)


@given(
    seed=st.integers(0, 1000),
    base=st.sampled_from(BASES),
    rule=st.sampled_from(RULES),
    place=st.integers(0, 24),
    factor=st.floats(1.01, 4.0),
)
def test_a_true_length_changes_nothing_before_it_shows(
    seed: int, base: str, rule: Rule, place: int, factor: float
) -> None:
    """With evals at fixed intervals, a job that will run on looks like one that will not, until the latter ends."""
    jobs = list(Workload(WALL, 16, seed).jobs(25))
    other = [longer(job, factor) if i == place else job for i, job in enumerate(jobs)]

    first, second = (decided(world, base, rule) for world in (jobs, other))

    shows_s = end_of(jobs[place], first, ends_at=jobs[place].duration_s)
    assert [d for d in first if d.at_s < shows_s] == [d for d in second if d.at_s < shows_s]
    assert any(d.at_s < shows_s for d in first)


def end_of(job: TrueJob, found: list[Decision], ends_at: float) -> float:
    """Return when the job ended by its own work in this run; infinity if it was stopped, which shows nothing."""
    worked_s, since_s, overhead_s = 0.0, None, 0.0
    for each in (d for d in found if d.job_id == job.job_id):
        if each.verb == "start":
            since_s = each.at_s + overhead_s
        elif each.verb == "yield" and since_s is not None:
            worked_s += max(0.0, each.at_s - since_s)
            overhead_s, since_s = 120.0, None
        elif each.verb == "stop":
            return inf
    assert since_s is not None
    return since_s + ends_at - worked_s - 1e-6
