"""New evaluation curves by real training on one CPU core, with the expected score of each checkpoint beside it."""
