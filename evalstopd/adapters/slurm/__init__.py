"""Slurm behind the `Cluster` port, by its command line."""

from evalstopd.adapters.slurm.cluster import SlurmCluster

__all__ = ["SlurmCluster"]
