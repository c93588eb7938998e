"""Floods in a real MLflow server: written into its own database, for logging so much takes an attacker an hour."""

import sqlite3
from contextlib import closing
from pathlib import Path

_COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
_POINTS = "(key, value, timestamp, run_uuid, step, is_nan)"


def points(database: Path, run_id: str, metric: str, count: int) -> None:
    """Log so many points of one metric."""
    rows = f"INSERT INTO metrics {_POINTS} SELECT ?, i % 7, i, ?, i, 0 FROM n"
    _write(database, f"{_COUNT} {rows}", count, metric, run_id)
    _write(
        database, f"INSERT OR REPLACE INTO latest_metrics {_POINTS} VALUES (?, 1, 1, ?, 1, 0)", count, metric, run_id
    )


def keys(database: Path, run_id: str, count: int, length: int = 40) -> None:
    """Log one point of each of so many metrics, with names of this length."""
    name = f"substr(i || '/' || replace(hex(zeroblob({length})), '00', 'k'), 1, {length})"
    for table in ("metrics", "latest_metrics"):
        _write(database, f"{_COUNT} INSERT INTO {table} {_POINTS} SELECT {name}, 1, 1, ?, 1, 0 FROM n", count, run_id)


def runs(database: Path, like: str, count: int) -> None:
    """Make so many copies of a run with all its tags."""
    with closing(sqlite3.connect(database, timeout=60)) as sql, sql:
        columns = [row[1] for row in sql.execute("PRAGMA table_info(runs)") if row[1] != "run_uuid"]
        names = ", ".join(columns)
        sql.execute(
            f"{_COUNT.format(count=count)} INSERT INTO runs (run_uuid, {names}) "
            f"SELECT printf('%032x', i), {names} FROM n, runs WHERE run_uuid = ?",
            (like,),
        )
        sql.execute(
            f"{_COUNT.format(count=count)} INSERT INTO tags (key, value, run_uuid) "
            "SELECT key, value, printf('%032x', i) FROM n, tags WHERE run_uuid = ?",
            (like,),
        )


def _write(database: Path, statement: str, count: int, *values: str) -> None:
    with closing(sqlite3.connect(database, timeout=60)) as sql, sql:
        sql.execute(statement.format(count=count), values)
