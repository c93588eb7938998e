"""One squeue call's own separators: users' text may hold anything, so nothing fixed can part the fields."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.errors import Unavailable

_SECRET_BYTES = 12


@dataclass(frozen=True, slots=True)
class Frame:
    """The names of the fields asked for, and the unguessable word of this one call."""

    fields: tuple[str, ...]
    word: str

    @property
    def field_end(self) -> str:
        """Return what follows every field of a record but the last."""
        return f"~{self.word}~"

    @property
    def record_end(self) -> str:
        """Return what follows the last field of a record, before squeue's own newline."""
        return f"^{self.word}^"

    @property
    def format(self) -> str:
        """Return the format for squeue: a suffix of any text takes the place of a width, so nothing is cut."""
        *most, last = self.fields
        return ",".join([*(f"{name}:{self.field_end}" for name in most), f"{last}:{self.record_end}"])

    def split(self, text: str) -> list[tuple[str, ...]]:
        """Return the records of an answer; raises Unavailable where it is not whole."""
        *records, rest = text.split(f"{self.record_end}\n")
        if rest:
            raise Unavailable("squeue's answer is cut short or of another format")
        return [self._fields(record) for record in records]

    def _fields(self, record: str) -> tuple[str, ...]:
        fields = tuple(record.split(self.field_end))
        if len(fields) != len(self.fields):
            raise Unavailable(f"squeue's answer has a record of {len(fields)} fields, not {len(self.fields)}")
        return fields


def fresh_frame(fields: Sequence[str]) -> Frame:
    """Return a frame that no text written before this moment can imitate."""
    return Frame(tuple(fields), secrets.token_hex(_SECRET_BYTES))
