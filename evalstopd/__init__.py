"""evalstopd watches the evaluation quality of running Slurm jobs and stops the over-optimising ones."""
