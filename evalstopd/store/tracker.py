"""Reads series straight from the tables of MLflow's own database, for who may: read only, and of known layouts only.

It lives here because SQLAlchemy does; to the daemon's own store it has no relation.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Engine, Float, MetaData, String, Table, create_engine, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from evalstopd.core.model import Point
from evalstopd.errors import Misconfigured, Unavailable

# MLflow's migrations from 3.0 (logged models) to 3.17.2, and the last of 2.22, under all of which the table below is
# what it was.
KNOWN = frozenset(
    {
        "0584bdc529eb",
        "400f98739977", "6953534de441", "bda7b8c39065", "cbc13b556ace", "770bee3ae1dd", "a1b2c3d4e5f6", "de4033877273",
        "1a0cddfcaa16", "534353b11cbc", "71994744cf8e", "3da73c924c2f", "bf29a5ff90ea", "1bd49d398cd23", "b7c8d9e0f1a2",
        "5d2d30f0abce", "c9d4e5f6a7b8", "2c33131f4dae", "d3e4f5a6b7c8", "d0e1f2a3b4c5", "c8d9e0f1a2b3", "1b5f0d9ad7c1",
        "e1f2a3b4c5d6", "76601a5f987d", "c3d6457b6d8a", "a5b4c3d2e1f0", "ae8bbe7743c9", "7d34483879f0", "da6fb0208061",
        "89d3d66ed43f", "b7e4c1a90f23", "a8b9c0d1e2f3", "c1d2e3f4a5b6", "c3d9e7f1a2b4", "6f8d9c3b2a1e", "1971f2d9a75b",
        "17e22815139b", "b7e2c1a4d9f3", "75868b020152", "dc11669786a5",
    }
)  # fmt: skip
_TABLES = MetaData()
_REVISION = Table("alembic_version", _TABLES, Column("version_num", String))
_METRICS = Table(
    "metrics",
    _TABLES,
    Column("run_uuid", String),
    Column("key", String),
    Column("step", BigInteger),
    Column("timestamp", BigInteger),
    Column("value", Float),
    Column("is_nan", Boolean),
)


class TrackerDatabase:
    """MLflow's database by an address that need only be able to read. Raises Misconfigured for another kind of one.

    `timeout_s` is for one statement (PostgreSQL), or for a lock (SQLite).
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self._engine = _engine(url, timeout_s)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def series(self, metric: str, run_ids: Sequence[str], most: int) -> list[Point]:
        """Return the points that these runs have of a metric, `most` at most, in no order. Raises Unavailable."""
        try:
            with self._engine.connect() as connection:
                self._check(list(connection.execute(select(_REVISION.c.version_num)).scalars()))
                return list(_points(connection.execute(_asked(metric, run_ids).limit(most)), metric))
        except SQLAlchemyError as error:
            # Only the driver's own words: the rest repeats statement and address.
            said = str(getattr(error, "orig", None) or type(error).__name__).splitlines()
            raise Unavailable(f"MLflow's database: {said[0][:160] if said else 'no reason given'}") from None

    def look(self) -> str:
        """Say that the database answers and has a known layout. Raises Unavailable where it does not."""
        self.series("", (), 1)
        return "it answers, and its layout is known"

    def _check(self, revisions: Sequence[str]) -> None:
        if len(revisions) != 1 or revisions[0] not in KNOWN:
            shown = ", ".join(revisions)[:60] or "none"
            raise Unavailable(f"MLflow's database has a layout that is not known here (revision {shown!a})")


def _asked(metric: str, run_ids: Sequence[str]) -> Any:
    c = _METRICS.c
    return select(c.run_uuid, c.key, c.step, c.timestamp, c.value, c.is_nan).where(
        c.key == metric, c.run_uuid.in_(list(run_ids))
    )


def _points(rows: Any, metric: str) -> Iterator[Point]:
    for run_id, key, step, timestamp, value, is_nan in rows:
        # Databases that compare without regard to case give the points of `Loss` for `loss` as well.
        if key == metric:
            yield Point(run_id, int(step), math.nan if is_nan else float(value), int(timestamp))


def _engine(url: str, timeout_s: float) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Misconfigured("mlflow.database: not an address") from None
    kind = parsed.get_backend_name()
    try:
        if kind == "sqlite" and parsed.database:
            read_only = URL.create("sqlite", database=f"file:{parsed.database}", query={"mode": "ro", "uri": "true"})
            return create_engine(read_only, connect_args={"timeout": timeout_s})
        if kind == "postgresql":
            options = f"-c default_transaction_read_only=on -c statement_timeout={round(timeout_s * 1000)}"
            arguments = {"options": options, "connect_timeout": max(2, round(timeout_s))}
            return create_engine(parsed, connect_args=arguments, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise Misconfigured(f"mlflow.database: {error.name} is not installed") from None
    raise Misconfigured("mlflow.database: must be sqlite:////path or postgresql+psycopg://...")
