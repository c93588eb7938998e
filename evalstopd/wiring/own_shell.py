"""Slurm as an owner's own shell has it: without the site's settings, which owners need not be able to read."""

import os
from threading import Event

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import ProcessRunner

_MOMENT_S = 1.5


def make_plain_cluster() -> SlurmCluster:
    """Return the scheduler's adapter without any settings."""
    return SlurmCluster(run=make_plain_runner())


def wait_a_moment() -> None:
    """Wait for those who read a comment before we wrote it, and write it after."""
    Event().wait(_MOMENT_S)


def make_plain_runner() -> ProcessRunner:
    """Return what runs Slurm's commands without any settings."""
    return ProcessRunner(os.environ.get("SLURM_CONF"), path=os.environ.get("PATH", os.defpath))
