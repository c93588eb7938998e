"""The ports of the daemon's loop over one running simulation: what the loop sees is what a cluster would show."""
