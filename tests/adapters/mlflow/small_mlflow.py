"""A small MLflow with the server's own limits, for tests that break it in ways a real one does not do on demand."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.adapters.mlflow.standin import Asked, Reply, plain, raw, run_json

MOST_ROWS = 25_000
MOST_SAMPLED = 2_500
Row = tuple[int, float, int]


@dataclass
class SmallRun:
    """One run: rows of step, value and timestamp for each metric."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    deleted: bool = False


@dataclass
class SmallMlflow:
    """Answers what the daemon asks; `trouble` may answer in its place."""

    runs: dict[str, SmallRun] = field(default_factory=dict)
    trouble: Callable[[Asked], Reply | None] = lambda asked: None
    calls: list[str] = field(default_factory=list)

    def add(self, run_id: str, **rows: list[Row]) -> SmallRun:
        self.runs[run_id] = SmallRun(dict(rows))
        return self.runs[run_id]

    def __call__(self, asked: Asked) -> Reply:
        route = asked.path.split("mlflow", 1)[1]
        self.calls.append(route)
        answers: Mapping[str, Callable[[Asked], Reply]] = {
            "/experiments/search": lambda _: plain({"experiments": [{"experiment_id": "0"}]}),
            "/runs/search": self._search,
            "/runs/get": self._get,
            "/metrics/get-history": self._history,
            "/metrics/get-history-bulk": self._bulk,
            "/metrics/get-history-bulk-interval": self._interval,
        }
        return self.trouble(asked) or answers[route](asked)

    def _facts(self, run_id: str) -> dict[str, object]:
        run = self.runs[run_id]
        info = run_json(run_id, lifecycle_stage="deleted" if run.deleted else "active")["run"]
        assert isinstance(info, dict)
        tags = [{"key": key, "value": value} for key, value in run.tags.items()]
        return {"info": info["info"], "data": {"metrics": [{"key": key} for key in run.rows], "tags": tags}}

    def _search(self, asked: Asked) -> Reply:
        body = json.loads(asked.body)
        ids = [word.strip(" '") for word in body["filter"].split("(")[1].rstrip(")").split(",")]
        view = body["run_view_type"]
        shown = [each for each in ids if each in self.runs and (view == "ALL" or self.runs[each].deleted)]
        return plain({"runs": [self._facts(each) for each in shown]})

    def _get(self, asked: Asked) -> Reply:
        if asked.query["run_id"] not in self.runs:
            return plain({"error_code": "RESOURCE_DOES_NOT_EXIST"}, 404)
        return plain({"run": self._facts(asked.query["run_id"])})

    def _history(self, asked: Asked) -> Reply:
        rows = self._rows(asked.query["run_id"], asked.query["metric_key"])
        start, size = int(asked.query.get("page_token", "0")), int(asked.query["max_results"])
        token = {"next_page_token": str(start + size)} if start + size < len(rows) else {}
        return plain({"metrics": rows[start : start + size], **token})

    def _bulk(self, asked: Asked) -> Reply:
        ids = sorted(asked.several("run_id"))
        assert len(ids) <= 100
        rows = [row for each in ids for row in self._rows(each, asked.query["metric_key"])]
        # Bare NaN, as the real one sends it here.
        return raw(json.dumps({"metrics": rows[:MOST_ROWS]}).encode())

    def _interval(self, asked: Asked) -> Reply:
        ids = asked.several("run_ids")
        assert len(ids) <= 100
        rows: list[dict[str, object]] = []
        for each in ids:
            own = self._rows(each, asked.query["metric_key"])
            rows += (
                own if len(own) <= MOST_SAMPLED else [own[at * len(own) // MOST_SAMPLED] for at in range(MOST_SAMPLED)]
            )
        return plain({"metrics": [{**row, "value": _text(row["value"])} for row in rows]})

    def _rows(self, run_id: str, metric: str) -> list[dict[str, object]]:
        rows = self.runs[run_id].rows.get(metric, []) if run_id in self.runs else []
        by_time = sorted(rows, key=lambda row: (row[2], row[0]))
        return [{"key": metric, "step": s, "value": v, "timestamp": t, "run_id": run_id} for s, v, t in by_time]


def _text(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
