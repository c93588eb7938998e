"""What reading costs on a real MLflow server, beside the bare calls: `make bench-mlflow`; fewer runs without it.

Ratios are of medians in one run on one machine; the JSON beside the output has every figure.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from demo.rig.mlflow_server import MlflowServer

from bench.cluster.fill import copies
from bench.cluster.limits import medians
from evalstopd.adapters.mlflow.http import Answer, Http, Params
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Pace
from evalstopd.adapters.system import SystemClock
from evalstopd.ports import RunQuery, RunReading

METRIC = "eval/reward"
WORKERS = 4
DUE = 100
CHUNK = 100
HOUR_S = 3_600.0
LIMITS = {"due_calls": 2, "due_ratio": 1.5, "all_ratio": 1.2}


@dataclass(frozen=True)
class Figures:
    """Seconds are medians; `cold_s` is the first pass of a daemon just started, which reads all parameters."""

    runs: int
    points: int
    params: int
    machine: str
    cold_s: float
    cold_calls: int
    due_calls: int
    due_s: float
    bare_call_s: float
    due_ratio: float
    all_calls: int
    all_s: float
    bare_sweep_s: float
    all_ratio: float

    def kept(self) -> bool:
        """Tell whether every limit was kept."""
        return all(getattr(self, name) <= limit for name, limit in LIMITS.items())


class Counted(Http):
    """The daemon's client, counting its calls."""

    calls = 0

    def get(self, path: str, params: Params) -> Answer:
        """Ask, and count."""
        self.calls += 1
        return super().get(path, params)

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Ask, and count."""
        self.calls += 1
        return super().post(path, body)


class Site:
    """A server with runs like those of Hugging Face trainers, and both ways of reading it."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        # As barely as the daemon asks: packing and unpacking would make the bare call the slower one.
        bare = {"Accept-Encoding": "identity"}
        # The server ends connections that were idle for five seconds.
        limits = httpx.Limits(keepalive_expiry=2.0)
        self._client = httpx.Client(base_url=uri, timeout=120, trust_env=False, headers=bare, limits=limits)
        self.http = Counted(Server(uri, timeout_s=60))
        self.passed_s = 0.0
        pace = Pace(workers=WORKERS, seconds=600)
        self.source = MlflowSource(self.http, SystemClock(), None, pace, None, lambda: self.passed_s)

    def add(self, points: int, params: int) -> str:
        """Make a run over REST; return its id."""
        made = self._told("/runs/create", {"experiment_id": "0", "start_time": 1})
        run_id = str(made["run"]["info"]["run_id"])
        listed = [{"key": f"param_{n}", "value": f"value of {n}"} for n in range(params)]
        for start in range(0, params, CHUNK):
            self._told("/runs/log-batch", {"run_id": run_id, "params": listed[start : start + CHUNK]})
        metrics = [{"key": METRIC, "step": n, "timestamp": n, "value": n / 7} for n in range(points)]
        self._told("/runs/log-batch", {"run_id": run_id, "metrics": metrics})
        return run_id

    def _told(self, path: str, body: Mapping[str, object]) -> Any:
        answer = self._client.post(f"/api/2.0/mlflow{path}", json=body)
        answer.raise_for_status()
        return answer.json()

    def bare_call(self, run_ids: Sequence[str]) -> int:
        """Read a chunk as barely as can be; return the number of points."""
        params = {"run_id": list(run_ids), "metric_key": METRIC, "max_results": "25000"}
        answer = self._client.get("/ajax-api/2.0/mlflow/metrics/get-history-bulk", params=params)
        return len(json.loads(answer.content)["metrics"])

    def bare_sweep(self, run_ids: Sequence[str]) -> int:
        """Read all runs so, by as many threads as the daemon has."""
        chunks = [run_ids[start : start + CHUNK] for start in range(0, len(run_ids), CHUNK)]
        with ThreadPoolExecutor(WORKERS) as pool:
            return sum(pool.map(self.bare_call, chunks))

    def read(self, run_ids: Sequence[str]) -> int:
        """Read runs as the daemon does; return the number of points."""
        readings = self.source.read([RunQuery(run_id, METRIC) for run_id in run_ids]).values()
        return sum(len(each.points) for each in readings if isinstance(each, RunReading))

    def calls_of(self, run_ids: Sequence[str]) -> int:
        """Return how many calls such a reading makes."""
        before = self.http.calls
        self.read(run_ids)
        return self.http.calls - before


def timed(work: Callable[[Sequence[str]], int], run_ids: Sequence[str], points: int) -> float:
    """Return the seconds that it took to read every point of these runs."""
    began = time.perf_counter()
    if work(run_ids) != points * len(run_ids):
        raise SystemExit("not every point was read")
    return time.perf_counter() - began


def in_turns(
    ways: Sequence[Callable[[Sequence[str]], int]], run_ids: Sequence[str], points: int, times: int, together: int
) -> list[float]:
    """Return each way's median; the ways take turns, so that the machine's other work falls on all of them."""
    return medians([[timed(way, run_ids, points) for way in ways] for _ in range(times * together)], together)


def measure(site: Site, database: Path, runs: int, points: int, params: int, times: int) -> Figures:
    """Fill the server and measure."""
    first = site.add(points, params)
    run_ids = [first, *copies(database, first, runs - 1)]
    cold_s = timed(site.read, run_ids, points)
    cold_calls = site.http.calls
    # An hour in which no run's tags or parameters change: what a daemon knows that has run for a while.
    site.passed_s += HOUR_S
    site.read(run_ids)
    due = run_ids[:DUE]
    due_calls, all_calls = site.calls_of(due), site.calls_of(run_ids)
    bare_call_s, due_s = in_turns([site.bare_call, site.read], due, points, times, 6)
    bare_sweep_s, all_s = in_turns([site.bare_sweep, site.read], run_ids, points, times, 2)
    return Figures(
        runs, points, params, f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        cold_s, cold_calls, due_calls, due_s, bare_call_s, due_s / bare_call_s,
        all_calls, all_s, bare_sweep_s, all_s / bare_sweep_s,
    )  # fmt: skip


def main() -> int:
    """Measure, print, write the JSON; return 1 where a limit was passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="2000 for the figures of the README")
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--params", type=int, default=150)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--json", type=Path, default=Path("bench-mlflow.json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, MlflowServer(sys.executable, Path(folder)) as server:
        figures = measure(Site(server.uri), server.database, asked.runs, asked.points, asked.params, asked.times)
    asked.json.write_text(json.dumps(asdict(figures) | {"limits": LIMITS}, indent=2) + "\n")
    for name, value in asdict(figures).items():
        print(f"{name:14} {value:.3f}" if isinstance(value, float) else f"{name:14} {value}")
    return 0 if figures.kept() else 1


if __name__ == "__main__":
    sys.exit(main())
