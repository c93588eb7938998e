"""Alembic revisions of the store, numbered, shipped in the wheel."""
