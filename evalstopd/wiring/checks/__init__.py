"""What `evalstopd check` asks of a site, by whom it is asked; nothing is changed by any of it."""
