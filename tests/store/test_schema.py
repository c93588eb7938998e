"""A store of the right version that lacks some of its schema: named, and never called sound."""

from pathlib import Path

import pytest
from sqlalchemy import text

from evalstopd.errors import Fatal
from evalstopd.store import migrate
from evalstopd.store.backup import backup
from evalstopd.store.engine import connect, parse
from evalstopd.store.schema import APPEND_ONLY, Missing, missing
from evalstopd.store.tables import Base


def sql(url: str, *statements: str) -> None:
    engines = connect(parse(url))
    with engines.write.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engines.dispose()


def lacks(url: str) -> Missing:
    engines = connect(parse(url))
    with engines.read.begin() as connection:
        found = missing(connection)
    engines.dispose()
    return found


def test_what_the_migrations_made_is_whole(url: str) -> None:
    assert lacks(url) == Missing((), ())
    migrate.check_whole(url)


def test_the_migrations_guard_the_very_tables_that_the_check_looks_at(url: str) -> None:
    """A table that a later revision guards, and the check forgets, is noticed."""
    engines = connect(parse(url))
    asked = {
        "sqlite": "SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal",
    }
    with engines.read.begin() as connection:
        guarded = connection.scalars(text(asked[connection.dialect.name])).all()
    engines.dispose()

    assert set(guarded) == set(APPEND_ONLY)


@pytest.mark.parametrize("table", sorted(Base.metadata.tables))
def test_each_table_that_is_not_there_is_named(url: str, table: str) -> None:
    sql(url, f"ALTER TABLE {table} RENAME TO moved_away")

    assert lacks(url).parts[0] == f"table {table}"
    with pytest.raises(Fatal, match=f"is not whole: table {table}"):
        migrate.check_whole(url, indexes=False)


def test_all_tables_gone_is_one_line(url: str) -> None:
    tables = [table.name for table in reversed(Base.metadata.sorted_tables)]
    sql(url, *(f"DROP TABLE {name}" for name in tables))
    with pytest.raises(Fatal, match=r"not whole: table .* and \d+ more missing; restore a backup") as caught:
        migrate.check_whole(url)

    assert "\n" not in str(caught.value)


def test_a_column_that_is_not_there_is_named(url: str) -> None:
    sql(url, "ALTER TABLE pins RENAME COLUMN why TO wherefore")

    assert lacks(url) == Missing(("column pins.why",), ())


def test_a_table_that_lost_its_keys_in_a_copy_is_named(url: str) -> None:
    """As CREATE TABLE AS SELECT leaves it: the columns are there, and nothing else."""
    sql(url, "CREATE TABLE kept AS SELECT * FROM leases", "DROP TABLE leases", "ALTER TABLE kept RENAME TO leases")

    assert lacks(url) == Missing(("primary key of leases",), ())


def test_each_trigger_that_is_not_there_is_named(url: str) -> None:
    with_table = parse(url).get_backend_name() == "postgresql"
    names = ["append_only"] if with_table else ["no_update", "no_delete", "no_replace"]
    triggers = [f"{table}_{name}" for table in APPEND_ONLY for name in names]
    for trigger, table in zip(triggers, (table for table in APPEND_ONLY for _ in names), strict=True):
        sql(url, f"DROP TRIGGER {trigger}{f' ON {table}' if with_table else ''}")

    assert lacks(url) == Missing(tuple(f"trigger {name}" for name in triggers), ())


def test_a_trigger_that_is_switched_off_is_not_there(url: str) -> None:
    if parse(url).get_backend_name() == "sqlite":
        sql(url, "DROP TRIGGER links_no_update")  # SQLite knows no other way
        expected = "trigger links_no_update"
    else:
        sql(url, "ALTER TABLE links DISABLE TRIGGER links_append_only")
        expected = "trigger links_append_only"

    assert lacks(url).parts == (expected,)


def test_a_missing_index_is_named_by_the_check_and_keeps_no_daemon_from_starting(url: str) -> None:
    sql(url, "DROP INDEX ix_links_ref", "DROP INDEX ix_intents_job")

    assert lacks(url) == Missing((), ("index ix_intents_job", "index ix_links_ref"))
    migrate.check_whole(url, indexes=False)
    with pytest.raises(Fatal, match="index ix_intents_job, index ix_links_ref missing"):
        migrate.check_whole(url)


def test_a_mutilated_store_is_not_copied(tmp_path: Path, sqlite_store: Path) -> None:
    """A backup that is called checked must not be one of half a store."""
    store = tmp_path / "store.db"
    store.write_bytes(sqlite_store.read_bytes())
    sql(f"sqlite:///{store}", "DROP TABLE pins")
    with pytest.raises(Fatal, match="table pins missing"):
        backup(f"sqlite:///{store}", tmp_path / "copy.db")

    assert not (tmp_path / "copy.db").exists()


def test_a_unique_key_that_is_not_there_is_named(empty_postgresql_url: str) -> None:
    """SQLite can drop none."""
    migrate.upgrade(empty_postgresql_url)
    sql(empty_postgresql_url, "ALTER TABLE jobs DROP CONSTRAINT uq_jobs_key")

    assert lacks(empty_postgresql_url).parts == ("unique key uq_jobs_key",)
