"""Statements that both databases have, each in its own dialect."""

from typing import cast

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from evalstopd.store.tables import Base


def insert_into(to: Connection, kind: type[Base]) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that may say what to do with a row that is there already."""
    return sqlite.insert(table_of(kind)) if to.dialect.name == "sqlite" else postgresql.insert(table_of(kind))


def table_of(kind: type[Base]) -> Table:
    """Return the table of a kind of rows."""
    return cast("Table", kind.__table__)
