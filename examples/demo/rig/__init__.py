"""Real parts as plain processes under one private directory: a Slurm cluster, users, an MLflow server."""
