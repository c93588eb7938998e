"""How values become columns: one rule for text, one for numbers, one for small records, the same on every database."""

import json
import re
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from typing import Any

from sqlalchemy import Dialect, String, Text
from sqlalchemy.types import TypeDecorator

_UNSAFE = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def escape(text: str) -> str:
    r"""Return any str as one that every database takes, without loss.

    UTF-8 has no lone surrogates (undecodable bytes of users' names) and PostgreSQL no NUL: these become
    `\u` and four hex digits, and the backslash is doubled. No two texts share an escaped form, so keys stay exact.
    """
    return _UNSAFE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\\" if found[1] is None else chr(int(found[1], base=16)), text)


class GarbledValue(ValueError):
    """A stored value that this program cannot have written."""


class AnyText(TypeDecorator[str]):
    """Text of any origin, stored by the rule of `escape`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape."""
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Unescape."""
        return None if value is None else unescape(value)


class ExactFloat(TypeDecorator[float]):
    """A float as Python spells it: SQLite would turn NaN into NULL, and a unique constraint needs equal NaNs."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> str | None:
        """Spell out."""
        return None if value is None else repr(float(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> float | None:
        """Read back."""
        if value is None:
            return None
        try:
            return float(value)
        except ValueError as error:
            raise _garbled(value) from error


class Words(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts as a JSON list."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str | None:
        """Write JSON."""
        return None if value is None else _dumped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...] | None:
        """Read JSON."""
        return None if value is None else _read(lambda: _loaded(value), value)


class Record(TypeDecorator[Any]):
    """A flat frozen dataclass as a JSON object; floats keep each bit, NaN and infinities too."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Write JSON."""
        return None if value is None else _dumped({each.name: getattr(value, each.name) for each in fields(value)})

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read JSON."""
        return None if value is None else _read(lambda: self.kind(**_loaded(value)), value)


class Word(TypeDecorator[Any]):
    """A member of an enumeration by its name in lower case."""

    impl = String(16)
    cache_ok = True

    def __init__(self, kind: type[Enum]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Write the name."""
        return None if value is None else self.kind(value).name.lower()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read the name."""
        return None if value is None else _read(lambda: self.kind[value.upper()], value)


def words(kind: type[Enum]) -> Word:
    """Return the column type of an enumeration: its members' names in lower case."""
    return Word(kind)


def _read(how: Callable[[], Any], value: object) -> Any:
    try:
        return how()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _garbled(value) from error


def _garbled(value: object) -> GarbledValue:
    return GarbledValue(f"{str(value)[:40]!a} is no value of its column")


def _dumped(value: Any) -> str:
    return json.dumps(_escaped(value), ensure_ascii=False, separators=(",", ":"))


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return escape(value)
        case tuple():
            return [_escaped(each) for each in value]
        case dict():
            return {name: _escaped(each) for name, each in value.items()}
        case _:
            return value


def _loaded(text: str) -> Any:
    # Every row of every pass comes by here, and hardly one has anything to unescape.
    return _whole(json.loads(text), _same if "\\" not in text else unescape)


def _whole(value: Any, unescaped: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return unescaped(value)
    if isinstance(value, list):
        return tuple([each if type(each) is float else _whole(each, unescaped) for each in value])
    if isinstance(value, dict):
        return {name: _whole(each, unescaped) for name, each in value.items()}
    return value


def _same(text: str) -> str:
    return text
