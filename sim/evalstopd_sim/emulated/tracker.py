"""The MetricsSource and RunWriter ports over the evals that emulated jobs have come to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.binding import JOB_ID_TAG, RunFacts, of_note
from evalstopd.core.logged import completed
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, Rejected
from evalstopd.ports import RunQuery, RunReading
from evalstopd_sim.emulated.simulation import Record, Simulation
from evalstopd_sim.truth import RLHF

METRIC = "score"


@dataclass(slots=True)
class EmulatedRun:
    """A run; `points` gives what has been logged of a metric by now, `metrics` are the names of those logged.

    RUNNING until somebody writes otherwise.
    """

    points: Callable[[str], tuple[Point, ...]]
    metrics: Callable[[], frozenset[str]]
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    status: str = "RUNNING"
    deleted: bool = False


class EmulatedTracker:
    """A tracker that answers at once and always, over any mapping of runs."""

    def __init__(self, find: Callable[[str], EmulatedRun | None]) -> None:
        self._find = find

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Read runs, each for itself."""
        return {query: self._read(query) for query in queries}

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags. Raises Rejected for an unknown or deleted run."""
        self._writable(run_id).tags.update(tags)

    def mark_killed(self, run_id: str) -> str:
        """Set a run KILLED if it is RUNNING. Raises Rejected for an unknown or deleted run."""
        run = self._writable(run_id)
        if run.status == "RUNNING":
            run.status = "KILLED"
        return run.status

    def _read(self, query: RunQuery) -> RunReading | EvalstopError:
        run = self._find(query.run_id)
        if run is None:
            return Rejected("no such run")
        facts = RunFacts(query.run_id, run.status, run.deleted, "", dict(run.tags), of_note(run.params), run.metrics())
        points = completed(query.metric, run.points(query.metric), run.metrics(), run.points, query.items)
        return RunReading(facts, points, run.points(query.proxy) if query.proxy else ())

    def _writable(self, run_id: str) -> EmulatedRun:
        run = self._find(run_id)
        if run is None or run.deleted:
            raise Rejected("no such run, or a deleted one")
        return run


class Runs:
    """The runs of a simulation's RLHF jobs, made when first asked for; each names its job, as the job names it."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._made: dict[str, EmulatedRun] = {}

    def comment_of(self, record: Record) -> str:
        """Return the comment by which a job names its run; only RLHF jobs are watched, as in the paper."""
        return f"mlflow_run=run-{record.job_id}" if record.job.truth.kind == RLHF else ""

    def find(self, run_id: str) -> EmulatedRun | None:
        """Return the run of this id; None if there is no such job."""
        if run_id not in self._made:
            record = self._world.records.get(run_id.removeprefix("run-"))
            if record is None or not run_id.startswith("run-"):
                return None
            self._made[run_id] = EmulatedRun(
                lambda metric: self._points(run_id, record) if metric == METRIC else (),
                lambda: frozenset((METRIC,)),
                {JOB_ID_TAG: record.job_id},
                {"output_dir": "out"},
            )
        return self._made[run_id]

    def _points(self, run_id: str, record: Record) -> tuple[Point, ...]:
        """Return the evals that the job's work has come to by now, steps counted from 1."""
        truth, work_s = record.job.truth, record.job.work_s(self._world.now_s())
        return tuple(
            [
                Point(run_id, place, score, round(1000 * mark), stderr=truth.stderr)
                for place, (mark, score) in enumerate(zip(truth.marks, truth.scores, strict=True), 1)
                if mark <= work_s
            ]
        )
