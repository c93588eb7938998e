"""The daemon's own loop over the real cluster and server, pass by pass: seconds, calls, history reads.

Runs as a process of its own: python -m bench.cluster.reading SETTINGS RUNS.json FIGURES.json
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.cluster.limits import medians
from bench.mlflow import Site
from evalstopd.adapters.mlflow.http import Answer, Http, Params
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Pace
from evalstopd.adapters.system import SystemClock
from evalstopd.collector import collect_rarely
from evalstopd.core.watch import Watch
from evalstopd.errors import EvalstopError
from evalstopd.ports import Changes, RunQuery, RunReading
from evalstopd.settings import Settings, load_settings
from evalstopd.wiring.loop import make_loop
from evalstopd.wiring.slurm import make_cluster
from evalstopd.wiring.store import make_store

TIMES = 5
TOGETHER = 6
DUE = 100
HOUR_S = 3_600.0
PATIENCE_S = 600.0
_NOT_SOON_S = 800.0
_MOST_COLD_PASSES = 10


class Listed(Http):
    """The daemon's client, keeping which routes it asked."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.routes: Counter[str] = Counter()

    def get(self, path: str, params: Params) -> Answer:
        """Ask, and count."""
        self.routes[path] += 1
        return super().get(path, params)

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Ask, and count."""
        self.routes[path] += 1
        return super().post(path, body)


@dataclass
class Timed:
    """The MetricsSource port with a stopwatch."""

    source: MlflowSource
    seconds: float = 0.0
    points: int = 0

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Read, and keep how long it took and how much came."""
        began_s = time.perf_counter()
        found = self.source.read(queries)
        self.seconds = time.perf_counter() - began_s
        self.points = sum(len(each.points) for each in found.values() if isinstance(each, RunReading))
        return found


@dataclass(frozen=True)
class Pass:
    """What one pass cost. Seconds; `reading_s` of them went to MLflow."""

    seconds: float
    reading_s: float
    scheduler_calls: int
    routes: Mapping[str, int]

    @property
    def calls(self) -> int:
        """Return the calls to MLflow."""
        return sum(self.routes.values())

    @property
    def history_reads(self) -> int:
        """Return the calls that read series."""
        return sum(count for route, count in self.routes.items() if "get-history" in route)


class Rig:
    """The loop as wiring makes it, with counters before its two ports to the outside."""

    def __init__(self, settings: Settings) -> None:
        self.passed_s = 0.0
        self.http = Listed(Server(settings.mlflow.tracking_uri, timeout_s=settings.mlflow.time_limit_s))
        # As patient as the bare calls: on a busy machine a pass over all runs takes longer than a daemon gives it.
        pace = Pace(seconds=PATIENCE_S)
        source = MlflowSource(self.http, SystemClock(), pace=pace, now_s=lambda: time.monotonic() + self.passed_s)
        self.timed, self.cluster, self.store = Timed(source), make_cluster(settings), make_store(settings)
        loop = make_loop(settings, threading.Event(), store=self.store)
        ports = replace(loop.ports, cluster=self.cluster, metrics=self.timed, runs=source, finder=source)
        self.loop = replace(loop, ports=ports)

    def tick(self) -> Pass:
        """Make one pass. Raises SystemExit for one that is not good."""
        self.http.routes.clear()
        self.timed.seconds, calls = 0.0, self.cluster.calls
        began_s = time.perf_counter()
        report = self.loop.tick()
        seconds = time.perf_counter() - began_s
        print(report.summary, flush=True)
        if not report.good:
            raise SystemExit(f"a pass was not good: {report.summary}")
        return Pass(seconds, self.timed.seconds, self.cluster.calls - calls, dict(self.http.routes))

    def watches(self) -> tuple[Watch, ...]:
        """Return the jobs that are watched and bound to a run."""
        return tuple(watch for watch in self.store.book("big").watches if watch.run_id)

    def set_due(self, count: int) -> list[str]:
        """Let so many jobs be due in the next pass and the others not; return the runs of the due ones."""
        now_s = time.time()
        watches = self.watches()
        due = [replace(each.reads, due_s=0.0 if n < count else now_s + _NOT_SOON_S) for n, each in enumerate(watches)]
        changed = tuple(replace(watch, reads=reads) for watch, reads in zip(watches, due, strict=True))
        self.store.record(Changes(watches=changed))
        return [watch.run_id or "" for watch in watches[:count]]


def cold(rig: Rig, jobs: int) -> dict[str, object]:
    """Make passes until every job is bound and read; return what it took a daemon just started."""
    began_s, calls = time.perf_counter(), 0
    for passes in range(1, _MOST_COLD_PASSES + 1):
        calls += rig.tick().calls
        if len(rig.watches()) >= jobs:
            seconds = time.perf_counter() - began_s
            return {"cold_s": seconds, "cold_passes": passes, "cold_calls": calls}
    raise SystemExit(f"only {len(rig.watches())} of {jobs} jobs are bound after {_MOST_COLD_PASSES} passes")


def idle(rig: Rig) -> dict[str, object]:
    """Return what passes with nothing due cost: medians, and the most of what is counted."""
    passes = []
    for _ in range(2 * TIMES):
        rig.set_due(0)
        passes.append(rig.tick())
    return {
        "idle_s": medians([[each.seconds] for each in passes])[0],
        "idle_scheduler_calls": max(each.scheduler_calls for each in passes),
        "idle_mlflow_calls": max(each.calls for each in passes),
        "idle_history_reads": max(each.history_reads for each in passes),
    }


def beside(rig: Rig, site: Site, name: str, count: int, together: int) -> dict[str, object]:
    """Return what reading so many due runs costs beside the bare calls; both take turns, so many together."""
    rows, most = [], 0
    for _ in range(TIMES * together):
        run_ids = rig.set_due(count)
        began_s = time.perf_counter()
        points = site.bare_sweep(run_ids)
        bare_s = time.perf_counter() - began_s
        one = rig.tick()
        if rig.timed.points != points:
            raise SystemExit(f"{rig.timed.points} points were read, {points} are there")
        rows.append((bare_s, one.reading_s, one.seconds))
        most = max(most, one.calls)
    bare_s, reading_s, tick_s = medians(rows, together)
    return {
        f"{name}_calls": most, f"{name}_bare_s": bare_s, f"{name}_reading_s": reading_s, f"{name}_tick_s": tick_s,
        f"{name}_ratio": reading_s / bare_s,
    }  # fmt: skip


def main(settings_file: str, jobs: str, figures_file: str) -> None:
    """Measure it all."""
    settings = load_settings(Path(settings_file))
    rig, site, count = Rig(settings), Site(settings.mlflow.tracking_uri), int(jobs)
    collect_rarely()
    figures = cold(rig, count)
    # An hour in which no run's tags or parameters change: what a daemon knows that has run for a while.
    rig.passed_s += HOUR_S
    rig.set_due(count)
    rig.tick()
    figures |= idle(rig)
    figures |= beside(rig, site, "due", DUE, TOGETHER)
    figures |= beside(rig, site, "all", count, 2)
    Path(figures_file).write_text(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
