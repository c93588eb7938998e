"""Slurm by its commands, as the settings say: the controller, and accounting far back."""

import os

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.queue import configured_name
from evalstopd.adapters.slurm.run import ProcessRunner
from evalstopd.errors import Unavailable
from evalstopd.ports import PastJobs
from evalstopd.settings import Settings

# What one reading of accounting may print: more is asked for in smaller pieces.
_HISTORY_CAP = 16 * 2**20


def make_cluster(settings: Settings) -> SlurmCluster:
    """Return the scheduler's adapter."""
    return SlurmCluster(run=make_runner(settings))


def make_runner(settings: Settings) -> ProcessRunner:
    """Return what runs Slurm's commands, for questions that no port has."""
    slurm = settings.slurm
    return ProcessRunner(slurm.conf or os.environ.get("SLURM_CONF"), slurm.time_limit_s, slurm.path)


def require_conf(settings: Settings) -> None:
    """Raise Unavailable where Slurm's configuration is named and cannot be read: its commands would hang on that.

    Not asked before each command: where the file lies on a server that is down, no time limit would end the question.
    """
    path = settings.slurm.conf or os.environ.get("SLURM_CONF")
    if not path or os.access(path, os.R_OK):
        return
    named = "slurm.conf" if settings.slurm.conf else "SLURM_CONF"
    wrong = "may not be read by this account" if os.path.exists(path) else "is not there"
    raise Unavailable(f"Slurm's configuration {path!a} {wrong} ({named})")


def own_cluster(settings: Settings) -> str:
    """Return what the cluster of these settings calls itself. Raises Unavailable where the controller does not say."""
    return configured_name(make_runner(settings))


def make_past_jobs(settings: Settings, time_limit_s: float = 0.0) -> PastJobs:
    """Return accounting, bounded in time and in what one answer may hold."""
    slurm = settings.slurm
    limit_s = max(slurm.time_limit_s, time_limit_s)
    return SlurmCluster(ProcessRunner(slurm.conf or os.environ.get("SLURM_CONF"), limit_s, slurm.path, _HISTORY_CAP))
