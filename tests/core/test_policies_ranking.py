"""What holds of every base policy: its trend tells the truth about its key, and the order is total."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstopd.core.model import JobView
from evalstopd.core.policies import POLICIES, STEADY, elastic, policy, rank

specs = st.sampled_from(sorted(POLICIES))
times = st.floats(0, 1e5, allow_nan=False)
views = st.builds(
    JobView,
    job_id=st.text("0123456789", min_size=1, max_size=4),
    submitted_s=times,
    gpus=st.integers(1, 16),
    estimate_s=st.none() | st.floats(1.0, 1e5),
    attained_s=times,
    running=st.booleans(),
    loss_drop_per_s=st.none() | st.floats(-1, 1),
)


@example(spec="srtf-est", job=JobView("1", 0.0, 1, estimate_s=100.0), share=1.0)
@given(spec=specs, job=views, share=st.floats(0.0, 1.0))
def test_a_running_jobs_key_follows_its_trend_for_as_long_as_the_trend_says(
    spec: str, job: JobView, share: float
) -> None:
    chosen, job = policy(spec), job._replace(running=True)
    trend = chosen.trend(job)
    # At the very end the key may be another one, where the trend says so.
    ran_s = min(share, 0.999 if trend.jumps else 1.0) * min(trend.holds_s, 1e6)

    before = chosen.key(job, 0.0)
    after = chosen.key(job._replace(attained_s=job.attained_s + ran_s), ran_s)

    assert after[:-1] == before[:-1]
    assert after[-1] == pytest.approx(before[-1] + trend.drift_per_s * ran_s, abs=1e-4)


@given(spec=specs, job=views, later_s=times)
def test_a_waiting_jobs_key_stays_as_it_is(spec: str, job: JobView, later_s: float) -> None:
    chosen, job = policy(spec), job._replace(running=False)

    assert chosen.key(job, 0.0) == chosen.key(job, later_s)


@given(spec=specs, jobs=st.lists(views, max_size=8, unique_by=lambda job: job.job_id), seed=st.randoms())
def test_the_order_is_the_same_whatever_order_the_jobs_come_in(spec: str, jobs: list[JobView], seed: object) -> None:
    shuffled = list(jobs)
    seed.shuffle(shuffled)

    assert rank(policy(spec), jobs, 0.0) == rank(policy(spec), shuffled, 0.0)


def test_srtf_counts_a_job_past_its_estimate_for_two_per_cent_of_it() -> None:
    job = JobView("1", 0.0, 1, estimate_s=1000.0, attained_s=5000.0)

    assert policy("srtf-est").key(job, 0.0) == (20.0,)
    assert policy("srtf-est:floor=0").key(job, 0.0) == (0.0,)
    assert policy("srtf-est").trend(job) == STEADY


def test_loss_aware_puts_a_job_without_a_loss_first_and_the_fastest_fall_next() -> None:
    jobs = [JobView(name, 0.0, 1, loss_drop_per_s=drop) for name, drop in [("a", 0.1), ("b", None), ("c", 0.3)]]

    assert [job.job_id for job in rank(policy("loss-aware"), jobs, 0.0)] == ["b", "c", "a"]


def test_las_ranks_by_gpu_seconds_in_queues_and_by_submission_within_one() -> None:
    jobs = [
        JobView("old-small", 0.0, 1, attained_s=3000.0),
        JobView("new", 9.0, 8),
        JobView("big", 1.0, 8, attained_s=1000.0),
        JobView("middle", 2.0, 4, attained_s=1000.0),
    ]

    assert [job.job_id for job in rank(policy("las"), jobs, 0.0)] == ["old-small", "new", "middle", "big"]


@pytest.mark.parametrize(
    ("make", "spec", "words"),
    [
        (policy, "lottery", "unknown policy 'lottery'; known: fifo"),
        (policy, "fifo:depth=3", "policy fifo has no parameter 'depth'; it has: none"),
        (policy, "srtf-est:floor=2", "floor must be a share"),
        (policy, "las:first=9000", "the limits must rise"),
        (policy, "slaq", "unknown policy 'slaq'"),
        (elastic, "fifo", "unknown policy 'fifo'; known: goodput, slaq"),
    ],
)
def test_bad_policies_are_told_in_words(make: object, spec: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(spec)


@pytest.mark.parametrize("spec", ["fifo", "sjf-est", "srtf-est", "srtf-est:floor=0.1", "loss-aware", "las:first=10"])
def test_a_policys_text_makes_the_same_policy(spec: str) -> None:
    assert policy(policy(spec).spec) == policy(spec)


@given(spec=specs, job=views)
def test_a_start_changes_a_key_only_where_the_policy_says_so(spec: str, job: JobView) -> None:
    chosen = policy(spec)
    waits, runs = (job._replace(running=running) for running in (False, True))

    assert chosen.sees_running or chosen.key(waits, 0.0) == chosen.key(runs, 0.0)


@given(spec=specs, job=views, drop=st.floats(-1, 1), declines=st.integers(0, 5))
def test_an_eval_changes_a_key_only_where_the_policy_says_so(
    spec: str, job: JobView, drop: float, declines: int
) -> None:
    chosen = policy(spec)
    later = job._replace(loss_drop_per_s=drop, declines=declines)

    assert chosen.sees_evals or chosen.key(job, 0.0) == chosen.key(later, 0.0)
