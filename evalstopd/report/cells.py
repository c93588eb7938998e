"""Tables for spreadsheets: the one rule by which text, which may be anybody's, stays text wherever a program splits."""

import csv
import json
import re
from collections.abc import Iterable
from typing import Any, TextIO

from evalstopd.report.text import plain

MOST = 4000
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
# Which of these a program splits at hangs on its locale and on who opens the file; a quote may begin a cell as well.
_PART = re.compile(rf'(^|[;,|"\t\r\n\v\f])(?=\s*[{_SIGNS}])')


def write_table(out: TextIO, lines: Iterable[Iterable[object]], most: int = MOST) -> None:
    """Write lines of cells as CSV, each text in quotation marks; a text longer than `most` characters is cut."""
    table = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    table.writerows([cell(value, most) for value in line] for line in lines)


def cell(value: object, most: int = MOST) -> str | int | float:
    """Return a value fit for a cell: numbers as they are, lists as JSON, texts so that none is computed.

    An apostrophe comes before each part of a text, at its beginning or after anything that a program may split at,
    which would be taken for a formula.
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return value
        case list() | tuple():
            return json.dumps(_uncomputed(value), ensure_ascii=True)
        case _:
            return plain(_uncomputed(str(value)), most)


def _uncomputed(value: Any) -> Any:
    """Return a value whose texts have no part that begins like a formula."""
    if isinstance(value, list | tuple):
        return [_uncomputed(each) for each in value]
    return _PART.sub(r"\1'", value) if isinstance(value, str) else value
