"""Independent runs as a Slurm job array, through submitit: one element for each seed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from evalstopd.errors import Misconfigured
from evalstopd_sim.arms import Sample
from evalstopd_sim.pool import Mapper, Task, run_task

MINUTES = 120
AT_ONCE = 256


@contextmanager
def array(folder: Path, options: Mapping[str, str]) -> Iterator[Mapper]:
    """Give a function that runs tasks, in their order, as a job array; `options` go to sbatch as they are.

    `folder` holds what goes to the jobs, their logs and results; it must be one that the nodes share. Raises
    Misconfigured where submitit is missing, Slurm does not take the array, or an element of it fails.
    """
    try:
        import submitit  # noqa: PLC0415 - an extra
        from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError  # noqa: PLC0415
    except ImportError:
        raise Misconfigured("--executor slurm needs submitit: pip install 'evalstopd[slurm]'") from None
    try:
        executor = submitit.SlurmExecutor(folder=folder)
        executor.update_parameters(
            job_name="evalstopd-reproduce", time=MINUTES, cpus_per_task=1, array_parallelism=AT_ONCE,
            additional_parameters=dict(options),
        )  # fmt: skip
        yield lambda tasks: _run(executor, tasks)
    except (FailedSubmissionError, FailedJobError, UncompletedJobError, RuntimeError) as error:
        raise Misconfigured(f"--executor slurm: {str(error).strip().splitlines()[-1]}; logs in {folder}") from None


def run_tasks(tasks: Sequence[Task]) -> list[tuple[Sample, ...]]:
    """Run the tasks of one element of the array."""
    return [run_task(task) for task in tasks]


def _run(executor: "submitit.SlurmExecutor", tasks: Sequence[Task]) -> Iterator[tuple[Sample, ...]]:  # type: ignore[name-defined]  # noqa: F821
    seeds = sorted({task.seed for task in tasks})
    by_seed = [[task for task in tasks if task.seed == seed] for seed in seeds]
    jobs = dict(zip(seeds, executor.map_array(run_tasks, by_seed), strict=True))
    results: dict[int, Iterator[tuple[Sample, ...]]] = {}
    for task in tasks:
        if task.seed not in results:
            results[task.seed] = iter(jobs[task.seed].result())
        yield next(results[task.seed])
