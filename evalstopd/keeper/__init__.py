"""The keeper: a small privileged helper that pins and publishes checkpoints as their owner."""
