"""Fills a tracking server's SQLite file: one run is logged through the API, the others are copies of its rows."""

import sqlite3
import uuid
from pathlib import Path

_TABLES = ("runs", "tags", "params", "metrics", "latest_metrics")
_ID = "run_uuid"


def copies(database: Path, run_id: str, count: int) -> list[str]:
    """Copy a run so many times and return the copies' ids; logging 300,000 parameters one by one takes minutes."""
    ids = [uuid.uuid4().hex for _ in range(count)]
    with sqlite3.connect(database, timeout=60) as connection:
        connection.execute("CREATE TEMP TABLE wanted (id TEXT)")
        connection.executemany("INSERT INTO wanted VALUES (?)", [(each,) for each in ids])
        for table in _TABLES:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != _ID]
            listed = ", ".join(f'"{column}"' for column in columns)
            connection.execute(
                f"INSERT INTO {table} ({_ID}, {listed}) SELECT wanted.id, {listed} "  # noqa: S608 - fixed names
                f"FROM {table}, wanted WHERE {table}.{_ID} = ?",
                (run_id,),
            )
    return ids
