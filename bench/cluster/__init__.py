"""Thousands of real jobs: what a pass, a stop and the daemon's memory cost. `python -m bench.cluster`, as root."""
