"""`evalstopd estimates`: how far estimates of jobs' lengths are off, against the time limits alone."""
