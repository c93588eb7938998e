"""What a store lacks of its version's schema: the version is a word in one table, which a bad restore may keep."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Inspector, Table, UniqueConstraint, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import ReflectedColumn

from evalstopd.errors import Fatal
from evalstopd.store.engine import shown
from evalstopd.store.tables import Base

APPEND_ONLY = ("intent_events", "would_be_stops", "remarks", "links", "credits", "bindings", "breakers")
"""Whose rows the migrations' triggers keep from being changed or removed."""
_GUARDS = {"sqlite": ("no_update", "no_delete", "no_replace"), "postgresql": ("append_only",)}
_FOUND_GUARDS = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
    # One that is switched off guards nothing.
    "postgresql": (
        "SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND relnamespace = to_regnamespace(current_schema())"
    ),
}
_MOST = 12


@dataclass(frozen=True, slots=True)
class Missing:
    """What is not there, in words: `parts`, without which nothing is right, `indexes`, without which all is slow."""

    parts: tuple[str, ...]
    indexes: tuple[str, ...]


def missing(connection: Connection) -> Missing:
    """Return which tables, columns, keys, triggers and indexes of this program's version a store lacks."""
    looked, names = inspect(connection), list(Base.metadata.tables)
    columns = {name: each for (_, name), each in looked.get_multi_columns(filter_names=names).items()}
    present = [table for table in Base.metadata.sorted_tables if table.name in columns]
    parts = [f"table {name}" for name in sorted(set(names) - set(columns))]
    parts += [each for table in present for each in _columns(table, columns[table.name])]
    parts += [*_keys(looked, present), *_guards(connection, columns)]
    return Missing(tuple(parts), tuple(_indexes(looked, present)))


def require_whole(connection: Connection, url: URL, *, indexes: bool) -> None:
    """Raise Fatal, naming what is missing, unless all is there; a missing index counts only where `indexes` says so."""
    found = missing(connection)
    lacks = (*found.parts, *(found.indexes if indexes else ()))
    if lacks:
        more = f" and {len(lacks) - _MOST} more" if len(lacks) > _MOST else ""
        raise Fatal(
            f"the store at {shown(url)} is not whole: {', '.join(lacks[:_MOST])}{more} missing; restore a backup, or "
            "copy its rows into a store that `evalstopd db upgrade` makes anew"
        )


def _columns(table: Table, found: Iterable[ReflectedColumn]) -> Iterator[str]:
    there = {each["name"] for each in found}
    return (f"column {table.name}.{each.name}" for each in table.columns if each.name not in there)


def _keys(looked: Inspector, tables: Sequence[Table]) -> Iterator[str]:
    names = [table.name for table in tables]
    primary = looked.get_multi_pk_constraint(filter_names=names)
    found = looked.get_multi_unique_constraints(filter_names=names)
    unique = {each["name"] for constraints in found.values() for each in constraints}
    for table in tables:
        if {each.name for each in table.primary_key} != set(primary[None, table.name]["constrained_columns"]):
            yield f"primary key of {table.name}"
        wanted = (each.name for each in table.constraints if isinstance(each, UniqueConstraint))
        yield from (f"unique key {name}" for name in wanted if name not in unique)


def _indexes(looked: Inspector, tables: Sequence[Table]) -> list[str]:
    found = looked.get_multi_indexes(filter_names=[table.name for table in tables])
    there = {each["name"] for indexes in found.values() for each in indexes}
    return sorted(f"index {each.name}" for table in tables for each in table.indexes if each.name not in there)


def _guards(connection: Connection, tables: Collection[str]) -> Iterator[str]:
    kind = connection.dialect.name
    found = {(name, table) for name, table in connection.execute(text(_FOUND_GUARDS[kind]))}
    for table in APPEND_ONLY:
        for name in (f"{table}_{end}" for end in _GUARDS[kind]):
            if table in tables and (name, table) not in found:
                yield f"trigger {name}"
