"""Slurm's node list expressions as names: `n[0-2,7],m1` is n0, n1, n2, n7, m1."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product

NODE_CAP = 8192
_PARTS = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


@lru_cache(maxsize=1_000)
def expand(expression: str, cap: int = NODE_CAP) -> tuple[str, ...]:
    """Return the names of a node list expression, the first `cap` of them.

    Nodes are for reading only, so what is no expression is one name as it stands.
    """
    if expression in {"", "(null)", "N/A", "None"}:
        return ()
    try:
        return tuple(islice((name for part in _split(expression) for name in _names(part)), cap))
    except ValueError:
        return (expression,)


def _split(expression: str) -> list[str]:
    """Split at the commas outside brackets."""
    return re.split(r",(?![^\[]*\])", expression)


def _names(part: str) -> Iterator[str]:
    pieces: list[tuple[str, ...]] = []
    end = 0
    for found in _PARTS.finditer(part):
        if found.start() != end:
            raise ValueError(part)
        end = found.end()
        pieces.append((found[2],) if found[1] is None else tuple(_numbers(found[1])))
    if end != len(part) or not pieces:
        raise ValueError(part)
    return ("".join(words) for words in product(*pieces))


def _numbers(ranges: str) -> Iterator[str]:
    for text in ranges.split(","):
        found = _RANGE.fullmatch(text)
        if not found:
            raise ValueError(text)
        first, last = found[1], found[2] or found[1]
        if int(last) - int(first) >= NODE_CAP:
            raise ValueError(text)
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))
