"""A day in the life of the daemon: 24 virtual hours and 2,000 jobs through the whole loop and a real SQLite store.

What must hold: every eval is stored once and none is missing, memory grows by less than 1 MB a virtual hour after the
first, file descriptors stay as many as they were. Exit code 1 if not.

Run from the root of the tree: PYTHONPATH=.:sim:migrations python -m bench.soak [--hours 24 --jobs 2000 --poll-s 30]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from evalstopd_sim.drive import Scheduler
from evalstopd_sim.emulated.simulation import Simulation
from evalstopd_sim.emulated.tracker import METRIC, Runs
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.presets import HOUR_S, PRESETS, Preset
from evalstopd_sim.rule import Wrapper
from evalstopd_sim.through import AnyStore, Daemon, watching
from evalstopd_sim.workload import Workload

from evalstopd.core.detectors import detector
from evalstopd.core.policies import policy
from evalstopd.store.migrate import upgrade
from evalstopd.store.sql import SqlStore

MOST_MB_AN_HOUR = 1.0
_MB = 1e6
_FIRST_HOURS = 1
_ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process held at a full virtual hour: resident memory in MB, open file descriptors, jobs seen."""

    hour: int
    memory_mb: float
    descriptors: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Account:
    """What the store has of the evals of the watched jobs: how many should be there, are missing, are there twice."""

    watched: int
    expected: int
    missing: int
    doubled: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a soak came to; `slope` is the growth of memory in MB a virtual hour after the first, by least squares."""

    samples: tuple[Sample, ...]
    account: Account
    stops: int
    cpu_s: float

    @property
    def slope(self) -> float:
        """Return the growth of memory in MB a virtual hour; 0 where there are too few samples to tell."""
        late = [each for each in self.samples if each.hour >= _FIRST_HOURS]
        if len(late) < _ENOUGH:
            return 0.0
        mean_h = sum(each.hour for each in late) / len(late)
        mean_mb = sum(each.memory_mb for each in late) / len(late)
        spread = sum((each.hour - mean_h) ** 2 for each in late)
        return sum((each.hour - mean_h) * (each.memory_mb - mean_mb) for each in late) / spread

    @property
    def faults(self) -> list[str]:
        """Return what does not hold, in words."""
        descriptors = {each.descriptors for each in self.samples[_FIRST_HOURS:]}
        found = (
            (self.account.missing, f"{self.account.missing} evals are missing"),
            (self.account.doubled, f"{self.account.doubled} evals are stored twice"),
            (not self.account.expected, "no eval was logged at all"),
            (self.slope >= MOST_MB_AN_HOUR, f"memory grows by {self.slope:.2f} MB an hour"),
            (len(descriptors) > 1, f"the number of file descriptors changes: {sorted(descriptors)}"),
        )
        return [text for holds, text in found if holds]


def soak(folder: Path, hours: int, jobs: int, poll_s: float, seed: int = 1) -> Result:
    """Run the daemon over an emulated cluster on which so many jobs arrive within so many virtual hours."""
    url = f"sqlite:///{folder / 'soak.db'}"
    upgrade(url)
    store = SqlStore(url)
    preset = PRESETS["paper"]
    gpus = _gpus(preset, jobs / hours)
    options = ClusterOptions(gpus, until_s=hours * HOUR_S)
    world = Simulation(Workload(preset, gpus, seed).jobs(jobs), Scheduler(policy("fifo")), options)
    runs = Runs(world)
    daemon = watching(world, runs, Wrapper(detector("k-declines:k=2")), poll_s, store, every_pass=True)
    begin_s = process_time()
    samples = tuple(_watched(daemon, world, hours))
    account = _account(store, runs, world)
    stops = sum(record.job.trigger is not None for record in world.records.values())
    store.close()
    return Result(samples, account, stops, process_time() - begin_s)


def _gpus(preset: Preset, jobs_an_hour: float) -> int:
    """Return the GPUs of a cluster that the preset's load keeps busy at this rate of jobs."""
    gpu_h = sum(kind.share * kind.mean_h * sum(kind.gpus) / len(kind.gpus) for kind in preset.kinds)
    return round(jobs_an_hour * gpu_h / preset.load)


def _watched(daemon: Daemon, world: Simulation, hours: int) -> Iterator[Sample]:
    """Poll to the end and yield a sample at each full hour."""
    for hour in range(hours + 1):
        while world.now_s() < hour * HOUR_S and daemon.poll():
            pass
        yield Sample(hour, _memory_mb(), len(os.listdir("/proc/self/fd")), len(world.records))


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def _account(store: AnyStore, runs: Runs, world: Simulation) -> Account:
    """Set what the store has beside what the runs logged, over the jobs whose end the daemon has seen."""
    over = [watch for watch in store.recent(len(world.records)) if watch.ending is not None and watch.run_id]
    expected = missing = doubled = 0
    for watch in over:
        run = runs.find(watch.run_id or "")
        logged = {(point.step, point.value) for point in run.points(METRIC)} if run is not None else set()
        stored = [(point.step, point.value) for point in store.points([watch.key])[watch.key]]
        expected += len(logged)
        missing += len(logged - set(stored))
        doubled += len(stored) - len(set(stored))
    return Account(len(over), expected, missing, doubled)


def main(words: list[str] | None = None) -> int:
    """Run a soak, print what was seen each hour, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--poll-s", type=float, default=30.0)
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        found = soak(Path(folder), asked.hours, asked.jobs, asked.poll_s)
    say = sys.stdout.write
    say(" hour  memory MB  descriptors  jobs seen\n")
    for each in found.samples:
        say(f"{each.hour:5}  {each.memory_mb:9.1f}  {each.descriptors:11}  {each.jobs:9}\n")
    seen = found.account
    say(f"{seen.watched} watched jobs ended, {found.stops} of them stopped; {seen.expected} evals logged, ")
    say(f"{seen.missing} missing, {seen.doubled} stored twice\n")
    say(f"memory: {found.slope:+.3f} MB a virtual hour after the first; {found.cpu_s:.0f} s of CPU\n")
    say("".join(f"NOT SO: {fault}\n" for fault in found.faults))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
