"""What a daemon does now and then beside its passes: it removes pins that nobody needs, and forgets jobs long over."""
