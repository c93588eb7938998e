"""mlflow behind its ports."""
