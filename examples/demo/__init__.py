"""The main job on real parts: Slurm, MLflow, training on the CPU, and the daemon in enforce mode."""
