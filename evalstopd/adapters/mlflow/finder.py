"""Finds the running runs that call themselves a job's: one small search a job, so that a flood costs that job alone."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Answer
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.problems import TooMuch
from evalstopd.adapters.mlflow.runs import facts_of
from evalstopd.core.binding import CLUSTER_TAG, JOB_ID_TAG, RunFacts
from evalstopd.errors import EvalstopError, Rejected

# A job has one run, or a few nested ones; more are somebody's flood.
MOST_RUNS = 20
_MOST_EXPERIMENTS = 5_000
_PAGE = 1_000


def naming(
    now: Pass, workers: int, cluster: str, raw_ids: Sequence[int]
) -> dict[int, tuple[RunFacts, ...] | EvalstopError]:
    """Return for each job the running runs whose tags name it, or why they cannot be told."""
    wanted = list(dict.fromkeys(raw_ids))
    try:
        experiments = _experiments(now)
    except EvalstopError as error:
        return dict.fromkeys(wanted, error)
    with ThreadPoolExecutor(workers, thread_name_prefix="mlflow-find") as pool:
        answers = pool.map(lambda raw_id: _of_job(now, experiments, cluster, raw_id), wanted)
        return dict(zip(wanted, answers, strict=True))


def _experiments(now: Pass) -> list[str]:
    """Return the newest experiments' ids: MLflow searches no runs without being told where."""
    found: list[str] = []
    token = ""
    while len(found) < _MOST_EXPERIMENTS:
        asked = {"max_results": _PAGE, "order_by": ["creation_time DESC"]}
        answer = now.post("/experiments/search", {**asked, "page_token": token} if token else asked)
        found += [_experiment_id(each) for each in fields.items(answer.body.get("experiments"), "experiments")]
        token = fields.text(answer.body.get("next_page_token"), "page token")
        if not token:
            break
    return found


def _experiment_id(item: object) -> str:
    return fields.text(fields.mapping(item, "experiment").get("experiment_id"), "experiment id")


def _of_job(now: Pass, experiments: list[str], cluster: str, raw_id: int) -> tuple[RunFacts, ...] | EvalstopError:
    try:
        return _runs(_search(now, experiments, cluster, raw_id))
    except EvalstopError as error:
        return error


def _search(now: Pass, experiments: list[str], cluster: str, raw_id: int) -> Answer:
    # The cluster's name comes from slurm.conf; a quote in it could end the text of the filter.
    if "'" in cluster or "\\" in cluster:
        raise Rejected("the cluster's name cannot be searched for")
    wanted = (
        f"attributes.status = 'RUNNING' and tags.`{JOB_ID_TAG}` = '{raw_id}' and tags.`{CLUSTER_TAG}` = '{cluster}'"
    )
    return now.post("/runs/search", {"experiment_ids": experiments, "filter": wanted, "max_results": MOST_RUNS + 1})


def _runs(answer: Answer) -> tuple[RunFacts, ...]:
    listed = fields.items(answer.body.get("runs"), "runs")
    if len(listed) > MOST_RUNS:
        raise TooMuch(f"more than {MOST_RUNS} running runs call themselves this job's")
    return tuple(facts_of(each) for each in listed)
