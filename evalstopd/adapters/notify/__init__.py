"""notify behind its ports."""
