"""Facts of many runs in one answer, by searching for their ids: what it leaves out proves nothing of a run."""

from collections.abc import Sequence
from itertools import chain, islice
from typing import Literal

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Asks
from evalstopd.adapters.mlflow.pages import pages
from evalstopd.adapters.mlflow.problems import TooLong, TooMuch
from evalstopd.adapters.mlflow.runs import facts_of
from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError

View = Literal["ALL", "ACTIVE_ONLY", "DELETED_ONLY"]
# Runs of one search: of those that are there, whose answers are long, and of those that are hardly ever: the deleted.
MOST_IDS: dict[View, int] = {"ALL": 100, "ACTIVE_ONLY": 100, "DELETED_ONLY": 500}
_MOST_EXPERIMENTS = 5_000
_PAGE = 1_000


def found(http: Asks, experiments: Sequence[str], run_ids: Sequence[str], view: View) -> dict[str, RunFacts | TooMuch]:
    """Return the facts of those of these runs that the search shows and that can be read; TooMuch of one too long.

    Where the answer is too long, half of the runs are asked for at a time. The ids must be ones that MLflow can give:
    they become part of a filter. Raises Unavailable or Rejected.
    """
    try:
        return {**_found(http, experiments, run_ids, view)}
    except TooLong as error:
        if len(run_ids) == 1:
            return {run_ids[0]: TooMuch(f"the run has too much beside its metrics: {error}")}
    middle = len(run_ids) // 2
    halves = (run_ids[:middle], run_ids[middle:])
    return {run_id: each for half in halves for run_id, each in found(http, experiments, half, view).items()}


def experiments(http: Asks, view: View) -> tuple[str, ...]:
    """Return the newest experiments' ids. Raises Unavailable or Rejected."""
    asked = {"view_type": view, "order_by": ["creation_time DESC"]}
    answers = pages(http, "/experiments/search", asked, _PAGE)
    listed = chain.from_iterable(fields.items(each.body.get("experiments"), "experiments") for each in answers)
    return tuple(_id_of(item) for item in islice(listed, _MOST_EXPERIMENTS))


def _found(http: Asks, experiments: Sequence[str], run_ids: Sequence[str], view: View) -> dict[str, RunFacts]:
    listed = ", ".join(f"'{run_id}'" for run_id in run_ids)
    asked = {
        "experiment_ids": list(experiments),
        "filter": f"attributes.run_id IN ({listed})",
        "run_view_type": view,
        "max_results": len(run_ids),
    }
    answer = http.post("/runs/search", asked)
    facts = (_facts(item) for item in fields.items(answer.body.get("runs"), "runs"))
    wanted = frozenset(run_ids)
    return {each.run_id: each for each in facts if each is not None and each.run_id in wanted}


def _id_of(item: object) -> str:
    return fields.text(fields.mapping(item, "experiment").get("experiment_id"), "experiment id")


def _facts(item: object) -> RunFacts | None:
    """Return a run's facts; None where they cannot be used: asked for alone, that run will say why."""
    try:
        return facts_of(item)
    except EvalstopError:
        return None
