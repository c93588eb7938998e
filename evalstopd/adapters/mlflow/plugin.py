"""Binds a training script's MLflow runs to its Slurm job without a change to the script: MLflow loads it by itself.

Needs MLflow (or mlflow-skinny) and the standard library alone; put it into a training environment by
`pip install --no-deps`. Two entry points:

* `mlflow.run_context_provider`: a new run gets the tags `slurm.job_id` and `slurm.cluster`.
* `mlflow.request_header_provider`: MLflow asks it before every request, when the active run, new or resumed, is
  known. It adds no header: it seals the run with the job's secret (EVALSTOP_JOB_SECRET, from TaskProlog), or, where
  there is none, lets the job's comment name the run.

A run that another job's tags name already is left alone (an evaluation job may log to a training job's run), unless
EVALSTOP_TAKE_RUN is set. A run made by MlflowClient is bound if it was given the job's tags, as Lightning's logger
does: `MlflowClient.create_run` is wrapped to see that. Others, and those that a client goes on with, are not seen:
`link(run_id)` binds them. Training matters more than its binding: nothing here raises, waits in the script's own
thread, or is tried more than a few times.
"""

import contextlib
import functools
import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from evalstopd.adapters.mlflow.job_comment import exact_job_id, name_run
from evalstopd.core.binding import CLUSTER_TAG, JOB_ID_TAG
from evalstopd.core.mac import MAC_TAG, seal

SECRET_VARIABLE = "EVALSTOP_JOB_SECRET"  # noqa: S105  the variable's name
TAKE_VARIABLE = "EVALSTOP_TAKE_RUN"
_MOST_TRIES = 5
_PAUSE_S = 60.0
# Others that write the comment at the same time have read it no longer ago than this, and written by then.
_MOMENT_S = 1.0
_JOB_ID = re.compile(r"[0-9]{1,10}", re.ASCII)
_CLUSTER = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


class SlurmTags:
    """A provider of tags for new runs."""

    def in_context(self) -> bool:
        """Tell whether this process is part of a Slurm job."""
        return bool(job_tags(os.environ))

    def tags(self) -> dict[str, str]:
        """Return the tags that name the job."""
        return job_tags(os.environ)


class RunBinder:
    """A provider of request headers that provides none: it sees the active run at every request, and binds it once."""

    def __init__(self) -> None:
        self._client: Any = None
        self._lock = threading.Lock()
        self._tries: dict[str, tuple[int, float]] = {}

    def in_context(self) -> bool:
        """Bind the active run if there is one that is not bound yet; return False: there are no headers."""
        with contextlib.suppress(Exception):
            if job_tags(os.environ):
                self._see_clients()
                self._see(_active_run())
        return False

    def request_headers(self) -> dict[str, str]:
        """Return no headers."""
        return {}

    def _see_clients(self) -> None:
        """Wrap MlflowClient.create_run, once, so that runs made with the job's tags are seen."""
        client = getattr(sys.modules.get("mlflow.tracking.client"), "MlflowClient", None)
        if client is None or client is self._client:
            return
        self._client = client
        make = client.create_run

        @functools.wraps(make)
        def create_run(*args: Any, **kwargs: Any) -> Any:
            run = make(*args, **kwargs)
            with contextlib.suppress(Exception):
                if job_tags(os.environ).items() <= run.data.tags.items():
                    self._see(run)
            return run

        client.create_run = create_run

    def _see(self, run: Any) -> None:
        if run is None or not self._begin(run.info.run_id):
            return
        if is_ours_to_bind(run.data.tags, os.environ):
            threading.Thread(target=self._bind, args=(run.info.run_id,), name="evalstop-bind", daemon=True).start()

    def _begin(self, run_id: str) -> bool:
        """Tell whether to try now; a run is tried again a minute after a failure, five times in all."""
        with self._lock:
            tries, again_s = self._tries.get(run_id, (0, 0.0))
            if tries >= _MOST_TRIES or time.monotonic() < again_s:
                return False
            self._tries[run_id] = (tries + 1, time.monotonic() + _PAUSE_S)
            return True

    def _bind(self, run_id: str) -> None:
        if link(run_id):
            with self._lock:
                self._tries[run_id] = (_MOST_TRIES, 0.0)


def link(run_id: str) -> bool:
    """Bind a run to this job: by a seal where the job has a secret, else by the job's comment; never raises.

    Returns whether it is bound; what went wrong is one line on stderr. Outside a Slurm job it does nothing.
    """
    if not job_tags(os.environ):
        return False
    try:
        _set_tags(run_id, {**job_tags(os.environ), **seal_tags(os.environ, run_id)})
        if not os.environ.get(SECRET_VARIABLE):
            name_run(exact_job_id(os.environ), run_id, lambda: time.sleep(_MOMENT_S))
    except Exception as error:  # noqa: BLE001  whatever goes wrong must not reach the training script
        _say(f"run {run_id[:64]!a} is not bound to its job: {error!a}")
        return False
    return True


def job_tags(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that name the job: the raw id, and the cluster where Slurm tells it; none outside a job.

    The cluster in small letters, as accounting has it. Only what Slurm itself could have said: MLflow would refuse to
    make a run with a tag that it cannot hold.
    """
    job_id, cluster = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_CLUSTER_NAME", "").lower()
    if not _JOB_ID.fullmatch(job_id):
        return {}
    return {JOB_ID_TAG: job_id, CLUSTER_TAG: cluster} if _CLUSTER.fullmatch(cluster) else {JOB_ID_TAG: job_id}


def seal_tags(environment: Mapping[str, str], run_id: str) -> dict[str, str]:
    """Return the run's seal by the job's secret, if it has one. Raises ValueError for what is no secret."""
    secret = environment.get(SECRET_VARIABLE, "")
    return {MAC_TAG: seal(secret, run_id)} if secret else {}


def is_ours_to_bind(tags: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Tell whether a run is free or this job's, or the job was told to take over the run of another."""
    ours = job_tags(environment)
    other = any(tags.get(name) not in (None, "", value) for name, value in ours.items())
    return not other or bool(environment.get(TAKE_VARIABLE))


def _active_run() -> Any:
    """Return the run that this thread, or else any thread, logs to: asynchronous logging has threads of its own."""
    fluent = sys.modules.get("mlflow.tracking.fluent")
    if fluent is None:
        return None
    elsewhere = getattr(fluent, "_get_latest_active_run", lambda: None)
    return fluent.active_run() or elsewhere()


def _set_tags(run_id: str, tags: Mapping[str, str]) -> None:
    mlflow, entities = importlib.import_module("mlflow"), importlib.import_module("mlflow.entities")
    mlflow.MlflowClient().log_batch(run_id, tags=[entities.RunTag(name, value) for name, value in tags.items()])


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"evalstopd: {text}\n")
