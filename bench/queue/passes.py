"""The daemon's loop over recorded queues: python -m bench.queue.passes TRACKER_URI JOBS FOLDER FIGURES.json."""

import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from bench.cluster.limits import medians
from bench.cluster.stops import memory_mb
from bench.queue.recorded import Recorded
from bench.queue.tracker import METRIC
from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.collector import collect_rarely
from evalstopd.core.model import JobKey, Mode, Point
from evalstopd.loop import Loop
from evalstopd.loop.judge import Judgement
from evalstopd.loop.observe import Observation
from evalstopd.loop.report import Tally
from evalstopd.ports import Book, Changes
from evalstopd.settings import MlflowSettings, RuleSettings, Settings, StoreSettings
from evalstopd.store.migrate import upgrade
from evalstopd.store.sql import SqlStore
from evalstopd.wiring.loop import make_loop

TIMES = 7
# At an eval each 20 minutes and a tick each 30 s, 250 of 10,000 runs bring one; some are asked twice for it.
ARRIVE, DUE = 250, 500
_NOT_SOON_S = 800.0
_MOST_COLD_PASSES = 20


class TimedStore(SqlStore):
    """The store, keeping how long the stored points took: reading them is no deciding."""

    points_s = 0.0

    def points(self, keys: Sequence[JobKey]) -> Mapping[JobKey, tuple[Point, ...]]:
        """Return the points, and keep the seconds."""
        began_s = time.process_time()
        found = super().points(keys)
        self.points_s = time.process_time() - began_s
        return found


@dataclass(frozen=True)
class Pass:
    """What one pass cost in seconds, in seconds of the processor, and in those that went to deciding."""

    seconds: float
    cpu_s: float
    decision_s: float


class Watched(Loop):
    """The loop, keeping how long it decided."""

    decision_s = 0.0

    def _judge(self, seen: Observation, book: Book, now_s: float, tally: Tally) -> Judgement:
        began_s = time.process_time()
        found = super()._judge(seen, book, now_s, tally)
        Watched.decision_s = time.process_time() - began_s
        return found


class Rig:
    """The loop over recordings, a real store and the real client."""

    def __init__(self, uri: str, jobs: int, folder: Path) -> None:
        url = f"sqlite:///{folder / 'queue.db'}"
        upgrade(url)
        self.jobs, self.uri, self.store, self.slurm = jobs, uri, TimedStore(url), Recorded(jobs)
        settings = Settings(
            store=StoreSettings(url=url),
            mlflow=MlflowSettings(tracking_uri=uri, time_limit_s=60.0),
            rules=RuleSettings(metric=METRIC, mode=Mode.MAX),
        )
        loop = make_loop(settings, threading.Event(), store=self.store)
        self.loop = Watched(replace(loop.ports, cluster=SlurmCluster(self.slurm)), loop.stance)

    def tick(self) -> Pass:
        """Make one pass. Raises SystemExit for one that is not good."""
        self.store.points_s = 0.0
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        report = self.loop.tick()
        seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        print(f"{seconds:.2f} s, {cpu_s:.2f} of the processor: {report.summary}", flush=True)
        if not report.good:
            raise SystemExit(f"a pass was not good: {report.summary}")
        return Pass(seconds, cpu_s, Watched.decision_s - self.store.points_s)

    def warm_up(self) -> tuple[int, float]:
        """Make passes until every run has been read; return how many and how long they took."""
        began_s = time.perf_counter()
        for passes in range(1, _MOST_COLD_PASSES + 1):
            self.tick()
            if sum(watch.evals > 0 for watch in self.store.book("evs").watches) == self.jobs:
                return passes, time.perf_counter() - began_s
        raise SystemExit("not every run was read")

    def set_due(self, due: int, logged: int) -> None:
        """Let the first runs be due and the others not, and so many of them have one eval more."""
        now_s = time.time()
        watches = self.store.book("evs").watches
        reads = [replace(w.reads, due_s=0.0 if n < due else now_s + _NOT_SOON_S) for n, w in enumerate(watches)]
        changed = tuple(replace(watch, reads=each) for watch, each in zip(watches, reads, strict=True))
        self.store.record(Changes(watches=changed))
        httpx.post(f"{self.uri}/logged", json=[watch.run_id for watch in watches[:logged]], trust_env=False)

    def measure(self, due: int, logged: int) -> list[float]:
        """Return the medians of passes with so many due runs: seconds, the processor's, and those of deciding."""
        rows = []
        for _ in range(TIMES):
            self.set_due(due, logged)
            one = self.tick()
            rows.append((one.seconds, one.cpu_s, one.decision_s))
        return medians(rows)


def main(uri: str, jobs: str, folder: str, figures_file: str) -> None:
    """Measure it all."""
    rig = Rig(uri, int(jobs), Path(folder))
    collect_rarely()
    passes, cold_s = rig.warm_up()
    cold_mb = memory_mb("self")[1]
    steady_s, cpu_s, decision_s = rig.measure(DUE, ARRIVE)
    idle_s, idle_cpu_s, idle_decision_s = rig.measure(0, 0)
    now_mb, most_mb = memory_mb("self")
    figures = {
        "jobs": rig.jobs, "cold_passes": passes, "cold_s": cold_s, "cold_memory_mb": cold_mb,
        "idle_tick_s": idle_s, "idle_cpu_s": idle_cpu_s, "idle_decision_s": idle_decision_s,
        "due": DUE, "new_evals": ARRIVE, "tick_s": steady_s, "tick_cpu_s": cpu_s, "decision_s": decision_s,
        "memory_now_mb": now_mb, "memory_mb": most_mb,
    }  # fmt: skip
    Path(figures_file).write_text(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
