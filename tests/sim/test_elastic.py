"""Elastic jobs: their speed, their rounds, and the same books as everybody else's."""

from collections.abc import Sequence

import pytest
from evalstopd_sim.elastic import drive_elastic, rate
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.presets import PRESETS
from evalstopd_sim.rule import NO_RULE, Act, Wrapper
from evalstopd_sim.score import scores
from evalstopd_sim.sight import first_view
from evalstopd_sim.workload import Workload

from evalstopd.core.detectors import KDeclines
from evalstopd.core.model import JobView
from evalstopd.core.policies import Allocation, elastic
from evalstopd.errors import Misconfigured

from .worlds import job


def test_speed_is_one_on_the_gpus_asked_for_and_grows_ever_more_slowly() -> None:
    hidden = job("a", gpus=4, duration_s=100.0, scaling=0.1)

    speeds = [rate(hidden, n, 50.0) for n in (1, 2, 4, 8, 16)]

    assert speeds[2] == pytest.approx(1.0)
    assert speeds == sorted(speeds)
    assert speeds[4] / speeds[3] < speeds[1] / speeds[0] < 2.0
    assert rate(hidden, 0, 50.0) == 0.0


def test_a_job_alone_starts_at_the_next_round_and_gets_all_that_helps() -> None:
    hidden = job("a", 10.0, 2, 100.0, scaling=0.05)

    tally = drive_elastic([hidden], elastic("goodput"), NO_RULE, ClusterOptions(2))

    assert tally.jct_s[0] == pytest.approx(50.0 + 100.0)
    assert tally.busy == pytest.approx(200.0)


@pytest.mark.parametrize("spec", ["goodput", "slaq"])
def test_every_job_ends_once_and_the_gpus_are_never_overbooked(spec: str) -> None:
    jobs = list(Workload(PRESETS["paper"], 64, 2).jobs(60))

    found = scores(drive_elastic(jobs, elastic(spec), NO_RULE, ClusterOptions(64)))

    assert (found.jobs, found.unfinished) == (60, 0)
    assert 0.3 < found.utilisation <= 1.0


def test_stops_come_at_the_same_evals_as_under_a_ranking_policy() -> None:
    jobs = list(Workload(PRESETS["paper"], 64, 2).jobs(60))
    rule = Wrapper(KDeclines(2))

    stopped = [drive_elastic(jobs, elastic(spec), rule, ClusterOptions(64)).stopped for spec in ("goodput", "slaq")]

    fires = bytearray(rule.trigger(each, first_view(each)) is not None for each in jobs)
    assert stopped == [fires, fires]


def test_gpu_hours_past_the_peak_follow_the_gpus_that_were_held() -> None:
    """On half of its GPUs the job takes longer for its last 40 % of work, in hours and in no more GPU-hours."""
    hidden = job("a", 0.0, 4, 1000.0, hacking=True, peak_s=600.0)

    tally = drive_elastic([hidden], elastic("goodput"), NO_RULE, ClusterOptions(2))

    assert tally.past_peak == pytest.approx(0.4 * tally.busy, rel=1e-6)


class NewestFirst:
    """Gives all GPUs to whoever came last."""

    spec = "newest-first"
    round_s = 10.0

    def allocate(self, jobs: Sequence[JobView], gpus: int, now_s: float) -> Allocation:
        return Allocation({max(jobs, key=lambda job: job.submitted_s).job_id: gpus})


def test_a_job_that_lost_all_its_gpus_pays_when_it_resumes() -> None:
    jobs = [job("a", 5.0, 2, 100.0), job("b", 55.0, 2, 30.0)]

    tally = drive_elastic(jobs, NewestFirst(), NO_RULE, ClusterOptions(2, preemption_overhead_s=120.0))

    assert list(tally.jct_s) == pytest.approx([100.0 + 40.0 + 120.0 + 5.0, 30.0 + 5.0])
    assert tally.overhead == 120.0 * 2
    assert tally.preemptions == 1


def test_what_an_elastic_policy_cannot_do_is_refused_in_words() -> None:
    with pytest.raises(Misconfigured, match="node placement"):
        drive_elastic([], elastic("slaq"), NO_RULE, ClusterOptions(8, gpus_per_node=8))
    with pytest.raises(Misconfigured, match="no job can be put last"):
        drive_elastic([], elastic("slaq"), Wrapper(KDeclines(2), Act.PUT_LAST), ClusterOptions(8))
