"""Any rule over runs that have ended: what it would have saved, and whom it would have wronged."""
