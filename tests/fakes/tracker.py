"""A small MLflow: runs, tags, full histories, outages per server and per run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.binding import RunFacts
from evalstopd.core.logged import completed
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, PastCaps, Rejected, Unavailable
from evalstopd.ports import RunQuery, RunReading


@dataclass(slots=True)
class FakeModel:
    """A logged model of a run: `scores` by metric and step, `files` their sizes in bytes."""

    step: int
    name: str = "model"
    ready: bool = True
    made_s: float = 0.0
    scores: dict[tuple[str, int], float] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=lambda: {"MLmodel": 300, "data/model.pt": 5_000})


@dataclass(slots=True)
class FakeRun:
    """One run as users can write it."""

    status: str = "RUNNING"
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    points: dict[str, list[Point]] = field(default_factory=dict)
    deleted: bool = False
    broken: bool = False
    user: str = ""
    started_ms: int | None = None
    experiment_id: str = "1"
    models: dict[str, FakeModel] = field(default_factory=dict)


@dataclass(slots=True)
class FakeTracker:
    """The MetricsSource and RunWriter ports over a dictionary of runs."""

    runs: dict[str, FakeRun] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)
    searches: int = 0
    down: bool = False

    def add_run(self, run_id: str, **tags: str) -> FakeRun:
        """Make a run whose output goes to `out-<run>`."""
        self.runs[run_id] = FakeRun(tags=dict(tags), params={"output_dir": f"out-{run_id}"})
        return self.runs[run_id]

    def log(self, run_id: str, step: int, value: float, key: str = "score", timestamp_ms: int | None = None) -> None:
        """Log one value, as a training script would."""
        when = timestamp_ms if timestamp_ms is not None else step
        self.runs[run_id].points.setdefault(key, []).append(Point(run_id, step, value, when))

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Read runs, each for itself."""
        return {query: self._read(query) for query in queries}

    def naming(self, cluster: str, raw_ids: Sequence[int]) -> Mapping[int, tuple[RunFacts, ...] | EvalstopError]:
        """Find the running runs that name jobs; more than 20 are too many."""
        self.searches += len(raw_ids)
        return {raw_id: self._naming(cluster, str(raw_id)) for raw_id in raw_ids}

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags."""
        self.writes.append((run_id, "tag"))
        self._run(run_id).tags.update(tags)

    def mark_killed(self, run_id: str) -> str:
        """Set a running run KILLED."""
        self.writes.append((run_id, "killed"))
        run = self._run(run_id)
        if run.status == "RUNNING":
            run.status = "KILLED"
        return run.status

    def _read(self, query: RunQuery) -> RunReading | EvalstopError:
        self.reads.append(query.run_id)
        try:
            run = self._run(query.run_id)
        except EvalstopError as error:
            return error
        facts = _facts(query.run_id, run)
        points = completed(
            query.metric, run.points.get(query.metric, ()), run.points, lambda name: run.points[name], query.items
        )
        return RunReading(facts, points, tuple(run.points.get(query.proxy, ())))

    def _naming(self, cluster: str, raw_id: str) -> tuple[RunFacts, ...] | EvalstopError:
        if self.down:
            return Unavailable("MLflow does not answer")
        found = tuple(
            _facts(run_id, run)
            for run_id, run in self.runs.items()
            if run.status == "RUNNING"
            and not run.deleted
            and (run.tags.get("slurm.job_id"), run.tags.get("slurm.cluster")) == (raw_id, cluster)
        )
        return found if len(found) <= 20 else PastCaps("more than 20 running runs call themselves this job's")

    def _run(self, run_id: str) -> FakeRun:
        if self.down:
            raise Unavailable("MLflow does not answer")
        run = self.runs.get(run_id)
        if run is None:
            raise Rejected("unknown run")
        if run.broken:
            raise Unavailable("half an answer")
        return run


def _facts(run_id: str, run: FakeRun) -> RunFacts:
    return RunFacts(
        run_id, run.status, run.deleted, run.user, dict(run.tags), dict(run.params), frozenset(run.points),
        run.started_ms, run.experiment_id, len(run.models),
    )  # fmt: skip
