"""Slurm behind the `Cluster` port, by its command line."""
