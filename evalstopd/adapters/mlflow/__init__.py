"""MLflow behind its ports, by plain HTTP: the package `mlflow` is never imported here (it costs 150 MB)."""
