"""The emulated Slurm: the same decisions on a virtual clock over hidden truth."""
