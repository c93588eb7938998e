"""How fast the simulator is: `python -m bench.simulator`. Ratios to a plain heap loop, since machines differ.

The workload is preset `paper`: 8 evals a job, SRTF-Est with EvalStop(k = 2) through core's own rules. Times are
CPU seconds of this process; the dealing of jobs from the seed is timed apart and in the sum.
"""

import sys
from collections.abc import Callable
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

REPEATS = 3
PAPER = PRESETS["paper"]


def plain_heap(events: int = 300_000) -> float:
    """Return the events per second of a loop that only takes from a heap and puts back."""
    heap: list[tuple[float, int, int, None]] = [(float(i), 0, i, None) for i in range(64)]
    start_s = process_time()
    for number in range(events):
        time_s, _, _, _ = heappop(heap)
        heappush(heap, (time_s + 1.7, 0, number + 64, None))
    return events / (process_time() - start_s)


def deal(count: int, gpus: int = 64) -> Callable[[], object]:
    """Return the dealing of jobs alone."""
    return lambda: sum(1 for _ in Workload(PAPER, gpus, 1).jobs(count))


def run(count: int, gpus: int = 64, base: str = "srtf-est", rule: Rule | None = None) -> Callable[[], object]:
    """Return a run with the jobs dealt as they are needed, so that memory does not grow with the workload."""
    wrapped = Wrapper(KDeclines(2)) if rule is None else rule
    return lambda: drive(Workload(PAPER, gpus, 1).jobs(count), Scheduler(policy(base), wrapped), ClusterOptions(gpus))


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median CPU seconds of a piece of work."""
    times = []
    for _ in range(repeats):
        start_s = process_time()
        work()
        times.append(process_time() - start_s)
    return median(times)


def line(name: str, jobs: int, took_s: float, heap: float) -> str:
    """Return one line: jobs per second, and how many plain heap events a job costs."""
    return f"{name:44} {jobs:>9,} {jobs / took_s:>10,.0f} {heap * took_s / jobs:>8.1f}"


def peak_mib() -> float:
    """Return the largest resident size of this process so far."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    say = sys.stdout.write
    heap = median(plain_heap() for _ in range(REPEATS))
    say(f"plain heap loop: {heap:,.0f} events/s\n")
    say(f"{'':44} {'jobs':>9} {'jobs/s':>10} {'heap ev.':>8}\n")
    dealt_s = seconds(deal(20_000))
    say(line("dealing alone", 20_000, dealt_s, heap) + "\n")
    for base in ("fifo", "sjf-est", "srtf-est", "las", "loss-aware"):
        took_s = seconds(run(20_000, base=base))
        say(line(f"{base} + k-declines(2), dealing included", 20_000, took_s, heap) + "\n")
        say(line(f"{base} + k-declines(2), without dealing", 20_000, took_s - dealt_s, heap) + "\n")
    say(line("srtf-est alone, dealing included", 20_000, seconds(run(20_000, rule=NO_RULE)), heap) + "\n")
    for gpus in (1024, 10_000):
        say(line(f"srtf-est + k-declines(2), {gpus} GPUs", 20_000, seconds(run(20_000, gpus)), heap) + "\n")
    for count in (100_000, *([1_000_000] if "--million" in sys.argv else [])):
        say(line("srtf-est + k-declines(2), 64 GPUs", count, seconds(run(count), 1), heap) + "\n")
        say(f"largest resident size after {count:,} jobs: {peak_mib():.0f} MiB\n")


if __name__ == "__main__":
    main()
