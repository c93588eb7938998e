"""Independent runs on several processes; what comes back does not depend on how many there are."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

from evalstopd_sim.arms import Arm, Sample, Setting, run_seed


@dataclass(frozen=True, slots=True)
class Task:
    """One seed of one setting under some arms."""

    setting: Setting
    seed: int
    arms: tuple[Arm, ...]


Mapper = Callable[[Sequence[Task]], Iterator[tuple[Sample, ...]]]


@contextmanager
def workers(processes: int) -> Iterator[Mapper]:
    """Give a function that runs tasks, in their order, on so many processes; one runs them here."""
    if processes <= 1:
        yield lambda tasks: map(run_task, tasks)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield lambda tasks: pool.map(run_task, tasks, chunksize=1)


def run_task(task: Task) -> tuple[Sample, ...]:
    """Run one task."""
    return run_seed(task.setting, task.seed, task.arms)
