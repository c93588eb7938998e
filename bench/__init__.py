"""Benchmarks: medians, and ratios to a plain loop on the same machine in the same run."""
