"""Texts that act wherever they are not shown as text, and what a harmless answer looks like."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

# ESC and CSI, Rich markup, CRLF, a spreadsheet's formula, HTML, a direction mark, NUL, a byte that is no UTF-8.
HOSTILE = {
    "esc": "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "markup": "[red]x[/red][link=file:///etc/passwd]y[/link][/]",
    "crlf": "a\r\nSubject: forged\r\n2026-01-01 INFO evalstopd: forged\x0b\x0c\x85\u2028",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1-1@SUM(A1)",
    "split": 'x;=HYPERLINK("http://evil.example","click");y|@SUM(A1)',
    "html": "<script>alert(1)</script>&amp;<img src=x onerror=y>",
    "direction": "a\u202eb\u2066c\u200f",
    "bytes": "\udcff\udcfe\x00\x7f",
}
ALL = " ".join(HOSTILE.values())
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def acting(text: str) -> set[str]:
    """Return the characters in an answer that could act on a terminal, a log or a line-wise reader."""
    return {letter for letter in text if letter != "\n" and not letter.isprintable()}


def is_formula(cell: str) -> bool:
    """Tell whether a spreadsheet would compute a cell."""
    return cell.lstrip().startswith(_FORMULA)


def cells(text: str) -> Iterator[str]:
    """Yield every cell of a CSV, its header's too."""
    for row in csv.reader(io.StringIO(text), strict=True):
        yield from row


def strict_json(text: str) -> Any:
    """Return what JSON holds; a NaN or Infinity, which no other program reads, is an error."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)
