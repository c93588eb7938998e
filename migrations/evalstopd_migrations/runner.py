"""Runs the revisions over a connection; the configuration is made here, so that no alembic.ini is needed."""

from importlib.resources import files

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def config() -> Config:
    """Return Alembic's configuration: where the revisions are."""
    made = Config()
    # Alembic expands % in its options.
    made.set_main_option("script_location", str(files("evalstopd_migrations")).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    return made


def run(connection: Connection, revision: str, version_table: str) -> None:
    """Upgrade to a revision within the connection's transaction. Raises CommandError for unknown revisions."""
    made = config()
    made.attributes.update(connection=connection, version_table=version_table)
    command.upgrade(made, revision)
