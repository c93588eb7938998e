"""Measurements with limits: `python -m bench`, from the root of the tree."""
