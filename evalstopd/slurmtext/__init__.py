"""What Slurm prints, read in one way by the daemon, the reports and the simulator: text in, plain data out."""
