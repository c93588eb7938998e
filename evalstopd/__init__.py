"""evalstopd watches the evaluation quality of running Slurm jobs and stops the over-optimising ones."""

__version__ = "0.1.0"
