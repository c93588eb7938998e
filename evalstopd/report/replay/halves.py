"""Two halves of a history, split by source: one to choose on, one to judge on."""

import hashlib
from collections.abc import Sequence
from enum import StrEnum

from evalstopd.report.replay.history import History


class Half(StrEnum):
    """Which runs are looked at."""

    ALL = "all"
    OPEN = "open"
    BLIND = "blind"


def half_of(source: str) -> Half:
    """Return a source's half for good: blind where the first byte of the SHA-256 of its name is odd.

    All runs of a source fall into the same half, so nothing that was chosen on one half has seen a sibling of a
    run in the other.
    """
    return Half.BLIND if hashlib.sha256(source.encode()).digest()[0] % 2 else Half.OPEN


def folds(histories: Sequence[History], most: int = 5) -> list[frozenset[str]]:
    """Return the sources in at most `most` groups of about as many runs each; the same for the same runs."""
    sizes: dict[str, int] = {}
    for history in histories:
        sizes[history.source] = sizes.get(history.source, 0) + 1
    groups: list[set[str]] = [set() for _ in range(min(most, len(sizes)))]
    for source in sorted(sizes, key=lambda name: (-sizes[name], name)):
        min(groups, key=lambda group: sum(sizes[name] for name in group)).add(source)
    return [frozenset(group) for group in groups]
