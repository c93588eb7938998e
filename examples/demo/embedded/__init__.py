"""The main job without Slurm and without root: emulated cluster, real MLflow, store, files and daemon's loop."""
