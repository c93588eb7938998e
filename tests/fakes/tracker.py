"""A small MLflow: runs, tags, full histories, outages per server and per run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.binding import RunFacts, of_note
from evalstopd.core.datasets import Dataset, Mark, Parted, Told, as_dataset, dataset_of, needs_telling, parted
from evalstopd.core.logged import completed
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError, PastCaps, Rejected, Unavailable
from evalstopd.ports import RunQuery, RunReading


@dataclass(slots=True)
class FakeModel:
    """A logged model of a run: `scores` by metric and step, `files` their sizes in bytes.

    `of` has the datasets of the values that were logged with it, by run.
    """

    step: int
    name: str = "model"
    ready: bool = True
    made_s: float = 0.0
    scores: dict[tuple[str, int], float] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=lambda: {"MLmodel": 300, "data/model.pt": 5_000})
    of: dict[tuple[str, Mark], frozenset[Dataset]] = field(default_factory=dict)


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
    """The MetricsSource and RunWriter ports over a dictionary of runs.

    `told` are the runs whose logged models were asked of which datasets their values are; `models_trouble` is what came
    of it instead.
    """

    runs: dict[str, FakeRun] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)
    searches: int = 0
    down: bool = False
    told: list[str] = field(default_factory=list)
    models_trouble: EvalstopError | None = None

    def add_run(self, run_id: str, **tags: str) -> FakeRun:
        """Make a run whose output goes to `out-<run>`."""
        self.runs[run_id] = FakeRun(tags=dict(tags), params={"output_dir": f"out-{run_id}"})
        return self.runs[run_id]

    def log(self, run_id: str, step: int, value: float, key: str = "score", timestamp_ms: int | None = None) -> None:
        """Log one value, as a training script would."""
        when = timestamp_ms if timestamp_ms is not None else step
        self.runs[run_id].points.setdefault(key, []).append(Point(run_id, step, value, when))

    def log_of(
        self,
        run_id: str,
        step: int,
        value: float,
        dataset: Dataset,
        *,
        key: str = "score",
        timestamp_ms: int | None = None,
        model: str = "",
    ) -> None:
        """Log one value with a dataset and a logged model: of this run's step, or one that is any run's."""
        self.log(run_id, step, value, key, timestamp_ms)
        owner = next((run for run in self.runs.values() if model in run.models), self.runs[run_id])
        held = owner.models.setdefault(model or f"m-{step}", FakeModel(step))
        mark = (key, step, self.runs[run_id].points[key][-1].timestamp_ms, value)
        if as_dataset(*dataset) is not None:
            held.of[run_id, mark] = held.of.get((run_id, mark), frozenset()) | {dataset}

    def told_by_models(self, run_id: str) -> Told:
        """Return what the logged models of all runs tell of one's values."""
        self.told.append(run_id)
        models = (model for run in self.runs.values() for model in run.models.values())
        found: dict[Mark, frozenset[Dataset]] = {}
        for (of_run, mark), datasets in (item for model in models for item in model.of.items()):
            if of_run == run_id:
                found[mark] = found.get(mark, frozenset()) | datasets
        return Told(found)

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
        part, told = Parted(tuple(run.points.get(query.metric, ()))), Told({})
        labelled = self._facts(query.run_id, run).labels > 0
        if needs_telling(part.points, query.dataset, apart=query.apart, labelled=labelled):
            told = self.told_by_models(query.run_id)
            if self.models_trouble is not None:
                return self.models_trouble
            part = parted(query.metric, part.points, told, query.dataset, apart=query.apart)

        def beside(name: str) -> Sequence[Point]:
            points = run.points[name]
            return told.beside(name, points, dataset_of(part.dataset)) if part.dataset else points

        points = completed(query.metric, part.points, run.points, beside, query.items)
        proxy = tuple(run.points.get(query.proxy, ()))
        return RunReading(self._facts(query.run_id, run), points, proxy, part.dataset, part.untold)

    def _naming(self, cluster: str, raw_id: str) -> tuple[RunFacts, ...] | EvalstopError:
        if self.down:
            return Unavailable("MLflow does not answer")
        found = [
            run_id
            for run_id, run in self.runs.items()
            if run.status == "RUNNING"
            and not run.deleted
            and (run.tags.get("slurm.job_id"), run.tags.get("slurm.cluster")) == (raw_id, cluster)
        ]
        if len(found) > 20:
            return PastCaps("more than 20 running runs call themselves this job's")
        return tuple(self._facts(run_id, self.runs[run_id]) for run_id in found)

    def _facts(self, run_id: str, run: FakeRun) -> RunFacts:
        used = [model for other in self.runs.values() if other is not run for model in other.models.values()]
        labels = len(run.models) + sum(any(of_run == run_id for of_run, _ in model.of) for model in used)
        return RunFacts(
            run_id, run.status, run.deleted, run.user, dict(run.tags), of_note(run.params), frozenset(run.points),
            run.started_ms, run.experiment_id, len(run.models), labels=labels,
        )  # fmt: skip

    def _run(self, run_id: str) -> FakeRun:
        if self.down:
            raise Unavailable("MLflow does not answer")
        run = self.runs.get(run_id)
        if run is None:
            raise Rejected("unknown run")
        if run.broken:
            raise Unavailable("half an answer")
        return run
