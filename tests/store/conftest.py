"""Stores to test: a file of SQLite and a database of PostgreSQL for each test, both brought up by the migrations."""

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
    engine = create_engine(parse(postgresql_url), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    return postgresql_url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store that has nothing yet."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("empty_postgresql_url"))
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def url(empty_url: str) -> str:
    """Return the URL of a store of this program's version."""
    migrate.upgrade(empty_url)
    return empty_url
