"""10,000 jobs on recorded squeue output: what a pass costs, and how much of it is deciding. `python -m bench.queue`."""
