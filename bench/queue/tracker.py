"""A tracking server for thousands of runs that are made up as they are asked for: python -m bench.queue.tracker.

It prints its port. Each run has 150 parameters and 50 points; a run named in /logged has one point more.
"""

import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

METRIC = "eval/reward"
PARAMS = 150
POINTS = 50
_ID = re.compile(r"'([0-9a-f]{32})'")
_more: dict[str, int] = {}


def facts(run_id: str) -> dict[str, object]:
    """Return a run as MLflow shows it."""
    common = [{"key": f"param_{n}", "value": f"value of {n}"} for n in range(PARAMS - 4)]
    own = [{"key": f"own_{n}", "value": f"{run_id} {n}"} for n in range(3)]
    params = [*common, *own, {"key": "output_dir", "value": f"/scratch/{run_id}/out"}]
    info = {"run_id": run_id, "status": "RUNNING", "lifecycle_stage": "active", "start_time": 1, "user_id": "alice"}
    tags = [{"key": "mlflow.runName", "value": f"run {run_id}"}, {"key": "mlflow.user", "value": "alice"}]
    return {"info": info, "data": {"params": params, "tags": tags, "metrics": [{"key": METRIC}]}}


def points(run_id: str) -> Iterator[dict[str, object]]:
    """Yield a run's points as MLflow's bulk route has them."""
    for step in range(POINTS + _more.get(run_id, 0)):
        yield {"key": METRIC, "run_id": run_id, "step": step, "timestamp": step, "value": step / 7}


class Handler(BaseHTTPRequestHandler):
    """The routes that the daemon asks."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with series."""
        url = urlsplit(self.path)
        asked = parse_qs(url.query)
        rows = [row for run_id in asked.get("run_id", ()) for row in points(run_id)]
        self._answer({"metrics": rows})

    def do_POST(self) -> None:
        """Answer a search, or let runs have one point more."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/experiments/search"):
            self._answer({"experiments": [{"experiment_id": "0"}]})
        elif self.path == "/logged":
            _more.update((run_id, _more.get(run_id, 0) + 1) for run_id in body)
            self._answer({})
        else:
            found = [] if body["run_view_type"] == "DELETED_ONLY" else _ID.findall(body["filter"])
            self._answer({"runs": [facts(run_id) for run_id in found]})

    def _answer(self, body: object) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *words: object) -> None:
        """Say nothing of each request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
