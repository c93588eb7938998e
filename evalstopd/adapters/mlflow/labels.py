"""Of which datasets a run's values are, by the logged models that they were logged with: no history of values says it.

Only asked where a metric has several series, after everything else has been read: so it costs no other job.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from evalstopd.adapters.mlflow import fields, runs
from evalstopd.adapters.mlflow.http import Answer, Asks
from evalstopd.adapters.mlflow.ladder import Series
from evalstopd.adapters.mlflow.models import checked_id, inputs_of, outputs_of
from evalstopd.adapters.mlflow.pages import pages
from evalstopd.adapters.mlflow.passes import side_by_side
from evalstopd.adapters.mlflow.points import Caps, point_of
from evalstopd.adapters.mlflow.problems import UNKNOWN_RUN, NotAsked, Silent, TooMuch, Unreachable, about_one, one_line
from evalstopd.adapters.mlflow.readings import Whole
from evalstopd.core.curve import is_score
from evalstopd.core.datasets import Dataset, Mark, Told, as_dataset
from evalstopd.core.logged import beside
from evalstopd.errors import EvalstopError, PastCaps, Rejected
from evalstopd.ports import RunQuery

_PAGE = 100
# Models that another run made, or none: each is asked for alone.
_MOST_ALONE = 50
# To name the datasets of a job that nobody has chosen one for, its newest models will do.
_FIRST = 2
# Values of all runs together of which it is remembered what the models told.
_MOST_REMEMBERED = 100_000

Answered = Told | str | EvalstopError
"""What the models tell, why they tell nothing, or why that is not known."""


_Values = Mapping[str, Series]
"""The values of a metric and of what is logged beside it, by name."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What was told of these values."""

    values: _Values
    told: Told


class Labels:
    """Asks the logged models of runs, each within `caps`; while no value has come they are not asked again."""

    def __init__(self, workers: int, caps: Caps) -> None:
        self._workers = workers
        self._caps = caps
        self._held: dict[RunQuery, _Held] = {}

    def told(self, now: Asks, mixed: Mapping[RunQuery, Whole]) -> dict[RunQuery, Answered]:
        """Return what the logged models of these runs tell of the metrics that were asked for."""

        def ask(query: RunQuery) -> Answered:
            values = _values_of(query, mixed[query])
            held = self._held.get(_plain(query))
            if held is not None and held.values == values:
                return held.told
            try:
                return _Reading(now, query.run_id, values, self._caps).told(whole=bool(query.dataset))
            except EvalstopError as error:
                return error if _ends_the_reading(query, error) else f"they cannot be told apart: {one_line(error)}"

        answers = dict(zip(mixed, side_by_side(self._workers, ask, list(mixed)), strict=True))
        for query, answer in answers.items():
            self._keep(query, _values_of(query, mixed[query]), answer)
        self._forget()
        return answers

    def _keep(self, query: RunQuery, values: _Values, answer: Answered) -> None:
        """Remember an answer that another look at the same values cannot better."""
        self._held.pop(_plain(query), None)
        if isinstance(answer, Told) and (not query.dataset or _tells_all(query.metric, values, answer)):
            self._held[_plain(query)] = _Held(values, answer)

    def _forget(self) -> None:
        """Drop the oldest answers while they hold too much."""
        size = sum(len(each.told.of) + 1 for each in self._held.values())
        while size > _MOST_REMEMBERED:
            size -= len(self._held.pop(next(iter(self._held))).told.of) + 1


def _values_of(query: RunQuery, whole: Whole) -> _Values:
    names = (query.metric, *beside(query.metric, whole.facts.metrics))
    return {name: whole.series.get(RunQuery(query.run_id, name), ()) for name in names}


def _plain(query: RunQuery) -> RunQuery:
    """Return the query without what changes nothing of what models tell."""
    return RunQuery(query.run_id, query.metric, dataset=query.dataset)


def _tells_all(metric: str, values: _Values, told: Told) -> bool:
    """Tell whether every value has its dataset: of the newest one it may not be written yet."""
    points = values[metric]
    return isinstance(points, tuple) and all(told.datasets(metric, each) for each in points if is_score(each.value))


def _ends_the_reading(query: RunQuery, error: EvalstopError) -> bool:
    """Tell whether there is no reading then: what MLflow refuses for good does not mend by being asked again.

    What is past the caps ends it too: that is asked for ever more rarely. Names alone are worth less.
    """
    if query.dataset:
        return not isinstance(error, Rejected) or isinstance(error, PastCaps)
    return isinstance(error, (Unreachable, Silent, NotAsked))


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading of one run's models, within the caps of a run."""

    http: Asks
    run_id: str
    metrics: Collection[str]
    caps: Caps

    @about_one("the run's logged models")
    def told(self, *, whole: bool) -> Told:
        """Return what all models tell, or but for `whole` the newest. Raises TooMuch, Rejected or Unavailable."""
        of: defaultdict[Mark, frozenset[Dataset]] = defaultdict(frozenset)
        for answer in self._within_caps(self._answers(whole=whole)):
            for mark, dataset in self._labels(answer):
                of[mark] |= {dataset}
                if len(of) > self.caps.points:
                    raise TooMuch(f"the run's logged models have too many values (more than {self.caps.points})")
        return Told(dict(of))

    def _within_caps(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        end_at, size = time.monotonic() + self.caps.seconds, 0
        for answer in answers:
            size += answer.size
            yield answer
            if size > self.caps.size:
                raise TooMuch(f"the run's logged models are too much to read (more than {self.caps.size} bytes)")
            if time.monotonic() > end_at:
                raise TooMuch(f"the run's logged models are too many to be read within {self.caps.seconds:g} s")

    def _answers(self, *, whole: bool) -> Iterator[Answer]:
        """Yield what MLflow says of the run's own models, page by page, then of others that it logged values with.

        A run names both: as its outputs, or as its inputs.
        """
        if not runs.is_run_id(self.run_id):
            raise Rejected(f"{UNKNOWN_RUN}: the id is not one that MLflow gives")
        run = fields.mapping(self.http.get("/runs/get", {"run_id": self.run_id}).body.get("run"), "run")
        left = dict.fromkeys(chain((name for name, _ in outputs_of(run)), inputs_of(run)))
        if not left:
            return
        experiment = fields.text(fields.mapping(run.get("info"), "run info").get("experiment_id"), "experiment id")
        for page in islice(self._pages(experiment), None if whole else 1):
            for model in _models_in(page):
                left.pop(_id_of(model), None)
            yield page
        if whole and len(left) > _MOST_ALONE:
            raise TooMuch(f"the run's values were logged with too many models of others (more than {_MOST_ALONE})")
        for model_id in islice(left, None if whole else _FIRST):
            yield from self._alone(model_id)

    def _pages(self, experiment: str) -> Iterator[Answer]:
        asked: dict[str, object] = {
            "experiment_ids": [experiment],
            "filter": f"source_run_id = '{self.run_id}'",
            "order_by": [{"field_name": "creation_timestamp", "ascending": False}],
        }
        for number, page in enumerate(pages(self.http, "/logged-models/search", asked, _PAGE)):
            if number == self.caps.pages:
                raise TooMuch(f"the run has too many logged models (more than {self.caps.pages} pages)")
            yield page

    def _alone(self, model_id: str) -> Iterator[Answer]:
        """Yield what MLflow says of one model: nothing of one that is deleted, or that we may not read."""
        try:
            yield self.http.get(f"/logged-models/{checked_id(model_id)}", {})
        except PastCaps:
            raise
        except Rejected:
            return

    def _labels(self, answer: Answer) -> Iterator[tuple[Mark, Dataset]]:
        """Yield the values that were logged to this run with a dataset: other runs may log to the same model."""
        for model in _models_in(answer):
            data = fields.mapping(model.get("data", {}), "model data")
            for item in fields.items(data.get("metrics"), "metrics"):
                each = fields.mapping(item, "metric")
                name = fields.text(each.get("key"), "metric name")
                dataset = _dataset(each)
                if dataset is not None and name in self.metrics and each.get("run_id") == self.run_id:
                    point = point_of(each, self.run_id)
                    yield (name, point.step, point.timestamp_ms, point.value), dataset


def _models_in(answer: Answer) -> Iterator[Mapping[str, object]]:
    """Yield the models of an answer: a page of them, or one."""
    for each in fields.items(answer.body.get("models"), "models"):
        yield fields.mapping(each, "model")
    if "model" in answer.body:
        yield fields.mapping(answer.body["model"], "model")


def _id_of(model: Mapping[str, object]) -> str:
    return fields.text(fields.mapping(model.get("info"), "model info").get("model_id"), "model id")


def _dataset(metric: Mapping[str, object]) -> Dataset | None:
    name = fields.text(metric.get("dataset_name"), "dataset's name")
    return as_dataset(name, fields.text(metric.get("dataset_digest"), "dataset's digest"))
