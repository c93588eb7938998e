"""Queries in, frozen rows out, rendering apart."""
