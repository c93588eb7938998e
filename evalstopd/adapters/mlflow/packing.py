"""Packs series into calls: one metric each, no more runs and no more expected points than a call may bring."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from evalstopd.ports import RunQuery

_UNKNOWN = 200


def expected(held: int | None) -> int:
    """Return how many points a series may have by now that had `held` when last read; None: never read."""
    return _UNKNOWN if held is None else held + held // 4 + 50


def packed(
    series: Iterable[RunQuery], held: Mapping[RunQuery, int], runs: int, budget: int
) -> Iterator[tuple[RunQuery, ...]]:
    """Yield chunks of one metric each, of at most `runs` series and `budget` expected points (but one at the least)."""
    ordered = sorted(series, key=lambda each: (each.metric, each.run_id))
    for _, same in groupby(ordered, key=lambda each: each.metric):
        chunk: list[RunQuery] = []
        points = 0
        for each in same:
            more = expected(held.get(each))
            if chunk and (len(chunk) == runs or points + more > budget):
                yield tuple(chunk)
                chunk, points = [], 0
            chunk.append(each)
            points += more
        yield tuple(chunk)
