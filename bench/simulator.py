"""How fast the simulator is: preset `paper`, 8 evals a job, EvalStop(k = 2) through core's own rules.

CPU seconds of this process, the best of several batches, so that others' load is out; beside them the cost of a job
in events of a plain heap loop on the same machine, since machines differ. Exit code 1 beyond the limits.

Run from the root of the tree: PYTHONPATH=.:sim python -m bench (`--million` adds a million jobs)
"""

import sys
from collections.abc import Callable
from heapq import heappop, heappush
from resource import RUSAGE_SELF, getrusage
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
ASKED_JOBS_S = 20_000
# Limits: a workload twenty times as long and clusters of any size may cost so much more a job; memory in MiB.
GROWTH = 1.5
MEMORY_MIB = 100.0

Result = tuple[str, float]


def plain_heap(events: int = 200_000) -> float:
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


def best_s(work: Callable[[], object], batches: int = 7) -> float:
    """Return the CPU seconds of the fastest batch."""
    times = []
    for _ in range(batches):
        start_s = process_time()
        work()
        times.append(process_time() - start_s)
    return min(times)


def per_job(gpus: int = 64, base: str = "srtf-est", rule: Rule | None = None) -> float:
    """Return the seconds a job costs, its dealing included."""
    return best_s(simulation(BATCH, gpus, base, rule)) / BATCH


def main() -> int:
    """Print the table and return the exit code."""
    say = sys.stdout.write
    heap_s = min(plain_heap() for _ in range(7))
    asked_s = per_job()
    results: list[Result] = [
        ("dealing alone", best_s(dealing(BATCH)) / BATCH),
        ("srtf-est alone", per_job(rule=NO_RULE)),
        ("srtf-est + k-declines(2)", asked_s),
        *((f"{base} + k-declines(2)", per_job(base=base)) for base in ("fifo", "sjf-est", "las", "loss-aware")),
        *((f"srtf-est + k-declines(2), {gpus:,} GPUs", per_job(gpus)) for gpus in (1024, 10_000)),
    ]
    counts = (100_000, 1_000_000) if "--million" in sys.argv else (100_000,)
    results += [(f"srtf-est + k-declines(2), {n:,} jobs", best_s(simulation(n), 1) / n) for n in counts]
    say(f"simulator; a plain heap loop does {1 / heap_s:,.0f} events/s\n")
    for name, job_s in results:
        say(f"{name:40} {1 / job_s:>10,.0f} jobs/s {job_s / heap_s:>7.0f} heap events a job\n")
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    say(f"largest resident size {memory:.0f} MiB (limit {MEMORY_MIB:.0f})\n")
    say(f"asked: {ASKED_JOBS_S:,} jobs/s; {'met' if 1 / asked_s >= ASKED_JOBS_S else 'missed'} on this machine\n")
    slow = [name for name, job_s in results if name.startswith("srtf-est +") and job_s > GROWTH * asked_s]
    for name in slow:
        say(f"beyond the limit of {GROWTH:g} x: {name}\n")
    return 1 if slow or memory > MEMORY_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
