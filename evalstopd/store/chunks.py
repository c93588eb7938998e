"""Long lists of keys in pieces: databases bound the number of parameters of a statement."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_MOST_PARAMETERS = 500


def chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Cut a list, each of its items named once, into pieces that every database takes."""
    unique = list(dict.fromkeys(items))
    for start in range(0, len(unique), _MOST_PARAMETERS):
        yield unique[start : start + _MOST_PARAMETERS]
