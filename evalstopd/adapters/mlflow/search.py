"""Facts of many runs in one answer, by searching for their ids: what it leaves out proves nothing of a run."""

from collections.abc import Sequence
from typing import Literal

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Asks
from evalstopd.adapters.mlflow.runs import facts_of
from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError

MOST_IDS = 100
_MOST_EXPERIMENTS = 5_000
_PAGE = 1_000
View = Literal["ALL", "DELETED_ONLY"]


def found(http: Asks, experiments: Sequence[str], run_ids: Sequence[str], view: View) -> dict[str, RunFacts]:
    """Return the facts of those of these runs that the search shows and that can be read.

    The ids must be ones that MLflow can give: they become part of a filter. Raises Unavailable or Rejected.
    """
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


def experiments(http: Asks) -> tuple[str, ...]:
    """Return the newest experiments' ids, deleted ones too. Raises Unavailable or Rejected."""
    ids: list[str] = []
    token = ""
    while len(ids) < _MOST_EXPERIMENTS:
        asked = {"max_results": _PAGE, "view_type": "ALL", "order_by": ["creation_time DESC"]}
        answer = http.post("/experiments/search", {**asked, "page_token": token} if token else asked)
        ids += [_id_of(item) for item in fields.items(answer.body.get("experiments"), "experiments")]
        token = fields.text(answer.body.get("next_page_token"), "page token")
        if not token:
            break
    return tuple(ids)


def _id_of(item: object) -> str:
    return fields.text(fields.mapping(item, "experiment").get("experiment_id"), "experiment id")


def _facts(item: object) -> RunFacts | None:
    """Return a run's facts; None where they cannot be used: asked for alone, that run will say why."""
    try:
        return facts_of(item)
    except EvalstopError:
        return None
