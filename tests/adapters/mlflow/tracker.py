"""A user's side of a real MLflow server, over REST: makes runs, logs points, ends and deletes runs."""

import base64
import json
import math
import secrets
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.points import Caps
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways

NOW_S = 1_700_000_000.5


class FixedClock:
    """A clock that stands still."""

    def now_s(self) -> float:
        return NOW_S


class Tracker:
    """One server with a source of ours before it."""

    def __init__(
        self, uri: str, caps: Caps | None = None, ways: Ways | None = None, server: Server | None = None
    ) -> None:
        """`server` is how the daemon comes to it, where that is by another way than the user's `uri`."""
        self.uri = uri
        self.server = replace(server, timeout_s=30) if server is not None else Server(uri, timeout_s=30)
        self.http = Http(self.server)
        self.source = MlflowSource(self.http, FixedClock(), caps, None, ways)
        self.experiment = self.make_experiment(secrets.token_hex(8)) if self.server.workspace else "0"
        self.runs = self.source
        self.finder = self.source

    def call(self, path: str, body: Mapping[str, object]) -> Any:
        headers = {"Content-Type": "application/json"}
        if self.server.username:
            login = f"{self.server.username}:{self.server.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        if self.server.workspace:
            headers["X-MLFLOW-WORKSPACE"] = self.server.workspace
        request = urllib.request.Request(f"{self.uri}/api/2.0/mlflow{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def make_run(self, tags: Mapping[str, str], params: Mapping[str, str]) -> str:
        run = self.call("/runs/create", {"experiment_id": self.experiment, "start_time": 1, "tags": _pairs(tags)})[
            "run"
        ]
        run_id = str(run["info"]["run_id"])
        if params:
            self.call("/runs/log-batch", {"run_id": run_id, "params": _pairs(params)})
        return run_id

    def make_experiment(self, name: str) -> str:
        return str(self.call("/experiments/create", {"name": name})["experiment_id"])

    def add_run(self, experiment_id: str, start_ms: int) -> str:
        run = self.call("/runs/create", {"experiment_id": experiment_id, "start_time": start_ms})["run"]
        return str(run["info"]["run_id"])

    def log(self, run_id: str, metric: str, points: Iterable[tuple[int, float, int]]) -> None:
        metrics = [
            {"key": metric, "step": step, "value": _number(value), "timestamp": stamp} for step, value, stamp in points
        ]
        for start in range(0, len(metrics), 1_000):
            self.call("/runs/log-batch", {"run_id": run_id, "metrics": metrics[start : start + 1_000]})

    def finish(self, run_id: str, status: str) -> None:
        self.call("/runs/update", {"run_id": run_id, "status": status, "end_time": 2})

    def delete(self, run_id: str) -> None:
        self.call("/runs/delete", {"run_id": run_id})


def _pairs(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs.items()]


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
