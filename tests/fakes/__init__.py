"""Stateful stand-ins of the ports: they keep a small world, and know nothing of what is tested."""
