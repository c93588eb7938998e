"""How fast the simulator is: preset `paper`, 8 evals a job, EvalStop(k = 2) through core's own rules.

CPU seconds of this process, the best and the median of several batches; beside them the cost of a job in events of a
plain heap loop on the same machine at the same time, since machines, and what else they do, differ. Exit code 1
beyond the limits.

Run from the root of the tree: PYTHONPATH=.:sim python -m bench (`--million` adds a million jobs)
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import process_time

from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.presets import PRESETS
from evalstopd_sim.rule import NO_RULE, Rule, Wrapper
from evalstopd_sim.workload import Workload

from evalstopd.core.detectors import KDeclines
from evalstopd.core.policies import policy

PAPER = PRESETS["paper"]
BATCH = 5_000
BATCHES = 7
ASKED_JOBS_S = 20_000
# Limits: a longer workload and clusters of any size may cost so much more a job; memory in MiB.
GROWTH = 1.5
MEMORY_MIB = 100.0
ASKED = "srtf-est + k-declines(2)"


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds a job costs: the best batch and the median; `heap_s` is what an event of a heap loop cost then."""

    best_s: float
    median_s: float
    heap_s: float

    @property
    def heap_events(self) -> float:
        """Return the cost in events of the plain heap loop: what can be compared between machines, and moments."""
        return self.best_s / self.heap_s


def plain_heap(events: int = 50_000) -> float:
    """Return the seconds an event of a loop costs that only takes from a heap and puts back."""
    heap: list[tuple[float, int, int, None]] = [(float(i), 0, i, None) for i in range(64)]
    start_s = process_time()
    for number in range(events):
        time_s, _, _, _ = heappop(heap)
        heappush(heap, (time_s + 1.7, 0, number + 64, None))
    return (process_time() - start_s) / events


def dealing(count: int) -> Callable[[], object]:
    """Return the dealing of jobs from the seed alone."""
    return lambda: sum(1 for _ in Workload(PAPER, 64, 1).jobs(count))


def simulation(count: int, gpus: int = 64, base: str = "srtf-est", rule: Rule | None = None) -> Callable[[], object]:
    """Return a run with its jobs dealt as they are needed, so that memory does not grow with the workload."""
    scheduler = Scheduler(policy(base), Wrapper(KDeclines(2)) if rule is None else rule)
    return lambda: drive(Workload(PAPER, gpus, 1).jobs(count), scheduler, ClusterOptions(gpus))


def cost(work: Callable[[], object], jobs: int, batches: int = BATCHES) -> Cost:
    """Return what a job costs; batches and heap loops take turns, so that both meet the same machine."""
    times, heaps = [], []
    for _ in range(batches):
        heaps.append(plain_heap())
        start_s = process_time()
        work()
        times.append((process_time() - start_s) / jobs)
    return Cost(min(times), median(times), min(heaps))


def main() -> int:
    """Print the table and return the exit code."""
    results = dict(measured("--million" in sys.argv))
    sys.stdout.write(f"simulator, CPU time{' ' * 23}best and median jobs/s   heap events a job\n")
    for name, each in results.items():
        speed = f"{1 / each.best_s:>10,.0f} {1 / each.median_s:>10,.0f}"
        sys.stdout.write(f"{name:40} {speed} {each.heap_events:>15.0f}\n")
    return verdict(results)


def measured(million: bool) -> Iterator[tuple[str, Cost]]:  # noqa: FBT001 - the one option there is
    """Yield every measurement with its name."""
    yield "dealing alone", cost(dealing(BATCH), BATCH)
    yield "srtf-est alone", cost(simulation(BATCH, rule=NO_RULE), BATCH)
    yield ASKED, cost(simulation(BATCH), BATCH, 2 * BATCHES)
    for base in ("fifo", "sjf-est", "las", "loss-aware"):
        yield f"{base} + k-declines(2)", cost(simulation(BATCH, base=base), BATCH)
    for gpus in (1024, 10_000):
        jobs = max(BATCH, 2 * gpus)
        yield f"{ASKED}, {gpus:,} GPUs", cost(simulation(jobs, gpus), jobs, 3)
    for jobs in (100_000, 1_000_000) if million else (100_000,):
        yield f"{ASKED}, {jobs:,} jobs", cost(simulation(jobs), jobs, 1)


def verdict(results: Mapping[str, Cost]) -> int:
    """Print what was asked for and what is beyond a limit; return the exit code."""
    asked = results[ASKED]
    met = "met" if 1 / asked.best_s >= ASKED_JOBS_S else "missed"
    sys.stdout.write(f"asked: {ASKED_JOBS_S:,} jobs/s; {met} on this machine at this moment\n")
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"largest resident size {memory:.0f} MiB (limit {MEMORY_MIB:.0f})\n")
    longer = {name: each for name, each in results.items() if name.startswith(ASKED)}
    slow = [name for name, each in longer.items() if each.heap_events > GROWTH * asked.heap_events]
    for name in slow:
        sys.stdout.write(f"beyond the limit of {GROWTH:g} x: {name}\n")
    return 1 if slow or memory > MEMORY_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
