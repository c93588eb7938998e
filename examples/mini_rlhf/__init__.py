"""A miniature RLHF run that over-optimises its reward model for real, on one CPU thread, in seconds."""
