"""Slurm as an owner's own shell has it: without the site's settings, which owners need not be able to read."""

import os

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import ProcessRunner


def make_plain_cluster() -> SlurmCluster:
    """Return the scheduler's adapter without any settings."""
    return SlurmCluster(run=make_plain_runner())


def make_plain_runner() -> ProcessRunner:
    """Return what runs Slurm's commands without any settings."""
    return ProcessRunner(os.environ.get("SLURM_CONF"), path=os.environ.get("PATH", os.defpath))
