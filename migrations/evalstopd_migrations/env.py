"""Alembic's entry: it runs in the transaction of the connection it was given, so that all or nothing is done."""

from alembic import context

options = context.config.attributes
context.configure(connection=options["connection"], version_table=options["version_table"])
context.run_migrations()
