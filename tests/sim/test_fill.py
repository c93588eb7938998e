"""The incremental filling gives what ranking everybody and filling from the top gives."""

from math import inf

from evalstopd_sim.fill import fill
from evalstopd_sim.options import HeadOfLine
from evalstopd_sim.ranks import Running, Waiting
from evalstopd_sim.simjob import SimJob
from evalstopd_sim.truth import TrueJob
from hypothesis import example, given
from hypothesis import strategies as st

from evalstopd.core.model import JobView
from evalstopd.core.policies import Trend

GPUS = 16
NOW_S = 50.0

sizes = st.sampled_from([1, 2, 3, 4, 8])
keys = st.integers(0, 30)
rows = st.lists(st.tuples(keys, sizes, st.sampled_from([0.0, -1.0])), max_size=14)


def sim_job(name: str, key: int, gpus: int, drift: float) -> SimJob:
    truth = TrueJob(name, "x", 0.0, gpus, 1.0, 1.0)
    job = SimJob(truth, 0, gpus, JobView(name, 0.0, gpus), trend=Trend(drift, inf))
    job.entry = ((float(key),), 0.0, name, job)
    return job


def top_down(jobs: list[tuple[int, SimJob]], head: HeadOfLine) -> set[str]:
    """Rank everybody by the key at this moment and give GPUs from the top: the rule in its plainest form."""
    free, chosen, blocked = GPUS, set(), False
    for _, job in sorted(jobs, key=lambda each: (each[0], each[1].view.job_id)):
        if job.gpus <= free and not (blocked and not job.running):
            free -= job.gpus
            chosen.add(job.view.job_id)
        elif not job.running:
            blocked = head is HeadOfLine.STRICT
    return chosen


# A blocked head stays blocked although a job that ranks after it has to yield and leaves room.
@example(waits=[(0, 3, 0.0), (1, 16, 0.0), (3, 2, 0.0)], runs=[(2, 8, 0.0), (2, 8, 0.0)], head=HeadOfLine.STRICT)
@given(waits=rows, runs=rows, head=st.sampled_from(HeadOfLine))
def test_filling_equals_ranking_everybody(
    waits: list[tuple[int, int, float]], runs: list[tuple[int, int, float]], head: HeadOfLine
) -> None:
    waiting, running, everyone, free = Waiting(), Running(), [], GPUS
    for place, (key, gpus, _) in enumerate(waits):
        job = sim_job(f"w{place:02d}", key, gpus, 0.0)
        waiting.add(job)
        everyone.append((key, job))
    for place, (key, gpus, drift) in enumerate(runs):
        if gpus > free:
            continue
        free -= gpus
        job = sim_job(f"r{place:02d}", key, gpus, drift)
        job.running = True
        running.add(job, NOW_S)
        everyone.append((key, job))

    changes = fill(waiting, running, free, NOW_S, head)

    held = {job.view.job_id for _, job in everyone if job.running}
    now = held - {job.view.job_id for job in changes.yields} | {job.view.job_id for job in changes.starts}
    assert now == top_down(everyone, head)


@given(rows)
def test_running_jobs_come_worst_first_at_any_time(runs: list[tuple[int, int, float]]) -> None:
    running, ended = Running(), 80.0
    for place, (key, gpus, drift) in enumerate(runs):
        running.add(sim_job(f"r{place:02d}", key, gpus, drift), NOW_S)

    found = [(entry[0], entry[2]) for entry in running.worst_first(ended)]

    moved = [((key + drift * (ended - NOW_S),), f"r{i:02d}") for i, (key, _, drift) in enumerate(runs)]
    assert found == sorted(moved, reverse=True)
