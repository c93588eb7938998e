"""Stores to test: a file of SQLite and a database of PostgreSQL for each test, both brought up by the migrations."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from evalstopd.store import migrate
from evalstopd.store.engine import parse
from tests.store import postgres

pytest.register_assert_rewrite("tests.contracts.store_contract")


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """Yield the URL of a PostgreSQL database; skip where there is no PostgreSQL."""
    try:
        with postgres.server() as socket:
            yield f"postgresql://tests@/postgres?host={socket}"
    except postgres.NotHere as reason:
        pytest.skip(f"PostgreSQL: {reason}")


@pytest.fixture
def empty_postgresql_url(postgresql_url: str) -> str:
    """Return the URL of a database that has nothing."""
    execute(postgresql_url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return postgresql_url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store that has nothing yet."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("empty_postgresql_url"))
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(scope="session")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of this program's version, to be copied: the migrations take longer than most tests."""
    file = tmp_path_factory.mktemp("made") / "store.db"
    migrate.upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def postgresql_store(postgresql_url: str) -> str:
    """The name of a database of this program's version, to be copied."""
    execute(postgresql_url, "CREATE DATABASE made")
    migrate.upgrade(postgres.other_database(postgresql_url, "made"))
    return "made"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store of this program's version."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_store"), tmp_path / "store.db")
        return f"sqlite:///{tmp_path}/store.db"
    made, server = (request.getfixturevalue(name) for name in ("postgresql_store", "postgresql_url"))
    execute(server, "DROP DATABASE IF EXISTS copied WITH (FORCE)", f"CREATE DATABASE copied TEMPLATE {made}")
    return postgres.other_database(server, "copied")


def execute(url: str, *statements: str) -> None:
    """Run statements on PostgreSQL, each by itself: databases are made outside of transactions."""
    engine = create_engine(parse(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
