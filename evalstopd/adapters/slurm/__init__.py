"""slurm behind its ports."""
