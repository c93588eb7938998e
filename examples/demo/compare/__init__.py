"""The same workload on a real Slurm cluster and on the emulated one, the daemon off and on."""
