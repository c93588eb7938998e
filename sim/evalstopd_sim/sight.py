"""What may be seen of a job: the one passage from the hidden truth to views and evals (the information frontier)."""

from collections.abc import Iterator
from math import exp

from evalstopd.core.detectors import Detector, Stop
from evalstopd.core.model import Eval, JobView
from evalstopd_sim.truth import TrueJob


def first_view(job: TrueJob) -> JobView:
    """Return what a scheduler sees of a job at its submission."""
    return JobView(job.job_id, job.submit_s, job.gpus, job.kind, job.estimate_s)


def later_view(view: JobView, attained_s: float, running: bool) -> JobView:  # noqa: FBT001 - as JobView has it
    """Return what is seen of a job later on: `dataclasses.replace`, at a quarter of its cost."""
    return JobView(
        view.job_id,
        view.submitted_s,
        view.gpus,
        view.kind,
        view.estimate_s,
        attained_s,
        running,
        view.loss_drop_per_s,
        view.progress,
        view.declines,
        view.evals,
    )


def loss_at(job: TrueJob, work_s: float) -> float:
    """Return the training loss that the job logs after this much work; 1 at its start."""
    return exp(-job.loss_rate * work_s / job.duration_s)


def evals(job: TrueJob) -> Iterator[Eval]:
    """Yield the job's evals in step order, each as it will be seen when the job gets there."""
    rate = -job.loss_rate / job.duration_s
    stderr = job.stderr
    for step, (mark, score) in enumerate(zip(job.marks, job.scores, strict=True), 1):
        yield Eval(step, score, stderr, 0, "", 0.0, mark, exp(rate * mark))


def loss_drop_per_s(job: TrueJob, seen: int) -> float | None:
    """Return the loss reduction per second of work between the last two observations; None before the first eval."""
    if seen == 0:
        return None
    before_s = job.marks[seen - 2] if seen > 1 else 0.0
    last_s = job.marks[seen - 1]
    return (loss_at(job, before_s) - loss_at(job, last_s)) / (last_s - before_s)


def first_stop(detector: Detector, job: TrueJob, view: JobView) -> tuple[int, Stop] | None:
    """Return the place of the first eval after which the rule says stop, and its verdict; None if it never does.

    A fold over the evals in order: what it answers at an eval depends on that eval and those before it only,
    so looking ahead tells nothing that the rule would not have said there.
    """
    state = detector.start(view)
    step = detector.step
    for point in evals(job):
        state, verdict = step(state, point)
        if isinstance(verdict, Stop):
            return point.step - 1, verdict
    return None
