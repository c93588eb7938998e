"""The elastic policies hand out no more than there is, to whoever gains most."""

from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.model import Eval, JobView
from evalstopd.core.policies import elastic

views = st.lists(
    st.builds(
        JobView,
        job_id=st.text("0123456789", min_size=1, max_size=4),
        submitted_s=st.just(0.0),
        gpus=st.integers(1, 16),
        estimate_s=st.floats(60.0, 1e5),
        attained_s=st.floats(0, 1e5),
    ),
    max_size=12,
    unique_by=lambda job: job.job_id,
)


@given(spec=st.sampled_from(["slaq", "goodput"]), jobs=views, gpus=st.integers(0, 64))
def test_no_more_gpus_are_given_than_there_are(spec: str, jobs: list[JobView], gpus: int) -> None:
    given_out = elastic(spec).allocate(jobs, gpus, 0.0).gpus

    assert sum(given_out.values()) <= gpus
    assert set(given_out) <= {job.job_id for job in jobs}
    assert all(n > 0 for n in given_out.values())


def test_goodput_gives_equal_jobs_equal_shares() -> None:
    jobs = [JobView(name, 0.0, 1, estimate_s=100.0) for name in "abcd"]

    assert dict(elastic("goodput").allocate(jobs, 8, 0.0).gpus) == {"a": 2, "b": 2, "c": 2, "d": 2}


def test_goodput_gives_more_to_a_job_that_has_got_further() -> None:
    """The gradient noise grows as training goes on, so a later job uses large batches better."""
    jobs = [JobView("early", 0.0, 1, estimate_s=100.0), JobView("late", 0.0, 1, estimate_s=100.0, attained_s=90.0)]

    given_out = elastic("goodput").allocate(jobs, 16, 0.0).gpus

    assert given_out["late"] > given_out["early"]


def test_slaq_gives_more_to_the_job_whose_loss_falls_faster() -> None:
    def falling(name: str, first: float, last: float) -> JobView:
        seen = (Eval(1, 0.5, elapsed_s=100.0, loss=first), Eval(2, 0.5, elapsed_s=200.0, loss=last))
        return JobView(name, 0.0, 1, estimate_s=1000.0, evals=seen)

    given_out = elastic("slaq").allocate([falling("slow", 0.50, 0.45), falling("fast", 0.9, 0.5)], 8, 0.0).gpus

    assert given_out["fast"] > given_out.get("slow", 0)


def test_slaq_gives_every_job_a_first_gpu_before_anyone_gets_more() -> None:
    jobs = [JobView(name, 0.0, 4, estimate_s=10_000.0) for name in "abc"]

    assert dict(elastic("slaq").allocate(jobs, 3, 0.0).gpus) == {"a": 1, "b": 1, "c": 1}
