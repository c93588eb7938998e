"""Finds the running runs that call themselves a job's: one small search a job, so that a flood costs that job alone."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from evalstopd.adapters.mlflow import fields, search
from evalstopd.adapters.mlflow.pages import pages
from evalstopd.adapters.mlflow.passes import Pass
from evalstopd.adapters.mlflow.problems import Forbidden, LockedOut, TooMuch, about_one
from evalstopd.adapters.mlflow.runs import facts_of
from evalstopd.core.binding import CLUSTER_TAG, JOB_ID_TAG, RunFacts
from evalstopd.errors import EvalstopError, Rejected

# A job has one run, or a few nested ones; more are somebody's flood.
MOST_RUNS = 20


def naming(
    now: Pass, workers: int, cluster: str, raw_ids: Sequence[int]
) -> dict[int, tuple[RunFacts, ...] | EvalstopError]:
    """Return for each job the running runs whose tags name it, or why they cannot be told."""
    wanted = list(dict.fromkeys(raw_ids))
    try:
        experiments = search.experiments(now, "ACTIVE_ONLY")
    except Forbidden as error:
        # A list is shown to everybody, as far as he may see it: no job's runs are the reason that this one is not.
        return dict.fromkeys(wanted, LockedOut(f"{error} to list experiments: look at the rights of our login"))
    except EvalstopError as error:
        return dict.fromkeys(wanted, error)
    with ThreadPoolExecutor(workers, thread_name_prefix="mlflow-find") as pool:
        answers = pool.map(lambda raw_id: _of_job(now, experiments, cluster, raw_id), wanted)
        return dict(zip(wanted, answers, strict=True))


def _of_job(now: Pass, experiments: Sequence[str], cluster: str, raw_id: int) -> tuple[RunFacts, ...] | EvalstopError:
    try:
        with about_one("a run that calls itself this job's is too large"):
            return _runs(now, experiments, _filter(cluster, raw_id))
    except EvalstopError as error:
        return error


def _filter(cluster: str, raw_id: int) -> str:
    # The cluster's name comes from slurm.conf; a quote in it could end the text of the filter.
    if "'" in cluster or "\\" in cluster:
        raise Rejected("the cluster's name cannot be searched for")
    return f"attributes.status = 'RUNNING' and tags.`{JOB_ID_TAG}` = '{raw_id}' and tags.`{CLUSTER_TAG}` = '{cluster}'"


def _runs(now: Pass, experiments: Sequence[str], wanted: str) -> tuple[RunFacts, ...]:
    found: list[RunFacts] = []
    for answer in pages(now, "/runs/search", {"experiment_ids": list(experiments), "filter": wanted}, MOST_RUNS + 1):
        found += [facts_of(each) for each in fields.items(answer.body.get("runs"), "runs")]
        if len(found) > MOST_RUNS:
            raise TooMuch(f"more than {MOST_RUNS} running runs call themselves this job's")
    return tuple(found)
