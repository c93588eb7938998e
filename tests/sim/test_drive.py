"""The emulated cluster: who starts, who yields, what a preemption costs, how jobs end."""

from math import inf

import pytest
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.options import ClusterOptions, HeadOfLine
from evalstopd_sim.oracle import PeakOracle, StopAtOracle
from evalstopd_sim.prior import PutLast
from evalstopd_sim.rule import Act, Wrapper
from evalstopd_sim.tally import Tally
from evalstopd_sim.truth import TrueJob

from evalstopd.core.detectors import KDeclines
from evalstopd.core.policies import policy
from evalstopd.errors import Misconfigured

from .worlds import decisions, job

K2 = Wrapper(KDeclines(2))


def run(jobs: list[TrueJob], base: str = "srtf-est", **options: float) -> Tally:
    return drive(jobs, Scheduler(policy(base)), ClusterOptions(**({"gpus": 8} | options)))


def test_a_blocked_head_lets_smaller_jobs_pass_only_if_it_may_be_skipped() -> None:
    jobs = [job("a", 0, 6), job("b", 1, 8), job("c", 2, 2)]

    def starts(head: HeadOfLine) -> list[str]:
        return [d.job_id for d in decisions(jobs, options=ClusterOptions(8, head)) if d.verb == "start"]

    assert starts(HeadOfLine.SKIP) == ["a", "c", "b"]
    assert starts(HeadOfLine.STRICT) == ["a", "b", "c"]


def test_a_shorter_job_preempts_and_the_longer_one_pays_on_its_resume() -> None:
    tally = run([job("long", 0, 8, 1000.0), job("short", 100, 8, 50.0)], preemption_overhead_s=120.0)

    assert list(tally.jct_s) == [1000.0 + 50.0 + 120.0, 50.0]
    assert tally.preemptions == 1
    assert tally.overhead == 120.0 * 8


def test_overhead_that_is_cut_short_is_paid_in_part_and_then_anew() -> None:
    """A job preempted while it still resumes has done no work since, and pays the whole overhead again."""
    jobs = [job("long", 0, 8, 1000.0), job("one", 100, 8, 50.0), job("two", 200, 8, 50.0)]

    tally = run(jobs, preemption_overhead_s=120.0)

    assert tally.overhead == (50.0 + 120.0) * 8
    assert tally.jct_s[0] == 1000.0 + 2 * 50.0 + 50.0 + 120.0


def test_a_job_that_still_resumes_ranks_as_it_did_when_it_was_started() -> None:
    """One second before its overhead is paid, the 900 s that it has left are still 900 s."""
    jobs = [job("long", 0, 8, 1000.0), job("one", 100, 8, 50.0), job("two", 269, 8, 850.0)]

    found = decisions(jobs, "srtf-est", options=ClusterOptions(8, preemption_overhead_s=120.0))

    assert (269.0, "yield", "long") in found


def test_a_preempted_job_cannot_start_before_its_requeue_delay_is_over() -> None:
    jobs = [job("long", 0, 8, 1000.0), job("short", 100, 8, 50.0)]
    options = ClusterOptions(8, preemption_overhead_s=0.0, requeue_delay_s=300.0)

    resumed = [d.at_s for d in decisions(jobs, "srtf-est", options=options) if (d.verb, d.job_id) == ("start", "long")]

    assert resumed == [0.0, 400.0]


def test_a_stop_frees_the_gpus_at_the_eval_it_follows_from() -> None:
    falling = job("a", 0, 8, 100.0, marks=(20.0, 40.0, 60.0), scores=(0.9, 0.8, 0.7), levels=(0.9, 0.8, 0.7))

    found = decisions([falling, job("b", 1, 8)], rule=K2)

    assert found[1:] == [(60.0, "stop", "a"), (60.0, "start", "b")]


def test_a_stop_at_the_last_eval_counts_as_one_although_the_job_would_end_there() -> None:
    falling = job("a", 0, 8, 60.0, marks=(20.0, 40.0, 60.0), scores=(0.9, 0.8, 0.7), levels=(0.9, 0.8, 0.7))

    assert [d.verb for d in decisions([falling], rule=K2)] == ["start", "stop"]


def test_rules_act_on_rlhf_jobs_only() -> None:
    falling = job("a", 0, 8, 60.0, kind="dpo", marks=(20.0, 40.0, 60.0), scores=(3.0, 2.0, 1.0))

    assert [d.verb for d in decisions([falling], rule=K2)] == ["start"]
    assert [d.verb for d in decisions([falling], rule=StopAtOracle())] == ["start"]


def test_oracles_stop_at_exact_places_between_evals() -> None:
    hacking = job("a", 0, 8, 100.0, hacking=True, peak_s=70.0, marks=(50.0, 100.0), scores=(0.5, 0.4))

    assert decisions([hacking], rule=StopAtOracle(0.65))[-1].at_s == 65.0
    assert decisions([hacking], rule=PeakOracle())[-1].at_s == 70.0


def test_a_job_that_is_put_last_yields_to_everybody_and_still_ends() -> None:
    falling = job("a", 0, 8, 100.0, marks=(20.0, 40.0, 60.0), scores=(0.9, 0.8, 0.7), levels=(0.9, 0.8, 0.7))
    longer = job("b", 1, 8, 500.0)

    found = decisions([falling, longer], PutLast(policy("srtf-est"), 1), Wrapper(KDeclines(2), Act.PUT_LAST))

    assert [(d.at_s, d.verb, d.job_id) for d in found] == [
        (0.0, "start", "a"),
        (60.0, "last", "a"),
        (60.0, "yield", "a"),
        (60.0, "start", "b"),
        (560.0, "start", "a"),
    ]


def test_a_rule_that_fires_at_the_last_eval_has_fired_although_the_job_ends_there() -> None:
    falling = job("a", 0, 8, 60.0, hacking=True, peak_s=20.0, marks=(20.0, 40.0, 60.0), scores=(0.9, 0.8, 0.7))
    scheduler = Scheduler(PutLast(policy("srtf-est"), 1), Wrapper(KDeclines(2), Act.PUT_LAST))

    tally = drive([falling], scheduler, ClusterOptions(8))

    assert (tally.caught, tally.caught_last, sum(tally.stopped)) == (1, 1, 0)


def test_a_job_that_its_owner_cancels_is_over_but_not_stopped() -> None:
    tally = run([job("a", 0, 8, 100.0, cancel_s=30.0)])

    assert (tally.over, tally.cancelled, sum(tally.stopped), tally.jct_s[0]) == (1, 1, 0, 30.0)


def test_jobs_that_are_not_over_at_the_horizon_are_not_counted_as_done() -> None:
    tally = run([job("a", 0, 8, 100.0), job("b", 1, 8, 100.0)], "fifo", until_s=150.0)

    assert (len(tally.jct_s), tally.over) == (2, 1)
    assert tally.jct_s[1] != tally.jct_s[1]


def test_las_lets_a_new_job_pass_one_that_has_had_its_share() -> None:
    found = decisions([job("a", 0, 8, 1000.0), job("b", 500, 8, 100.0)], "las")

    assert (500.0, "yield", "a") in found


def test_loss_aware_ranks_anew_when_a_loss_is_seen() -> None:
    """The older job's loss has flattened by its second eval; until the newer one's is seen, that goes first."""
    flat = job("flat", 0, 8, 1000.0, loss_rate=9.0, marks=(250.0, 500.0, 750.0, 1000.0))
    steep = job("steep", 600, 8, 1000.0, loss_rate=2.0, marks=(250.0, 500.0, 750.0, 1000.0))

    assert (600.0, "yield", "flat") in decisions([flat, steep], "loss-aware")


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([job("a", 0, 9)], "job a asks for 9 GPUs, more than the cluster's 8"),
        ([job("a", 5), job("b", 1)], "job b was submitted before"),
    ],
)
def test_a_workload_that_cannot_be_run_is_refused_in_words(jobs: list[TrueJob], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        decisions(jobs)


@pytest.mark.parametrize(
    "options",
    [
        {"gpus": 0},
        {"gpus": -4},
        {"preemption_overhead_s": inf},
        {"requeue_delay_s": -1.0},
        {"gpus": 10, "gpus_per_node": 4},
        {"until_s": 0.0},
    ],
)
def test_a_cluster_that_makes_no_sense_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(Misconfigured):
        ClusterOptions(**options)
