"""Packs series into calls: one metric each, no more runs and no more expected points than a call may bring."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from evalstopd.ports import RunQuery

_UNKNOWN = 200


def expected(held: int | None) -> int:
    """Return how many points a series may have by now that had `held` when last read; None: never read."""
    return _UNKNOWN if held is None else held + held // 4 + 50


def packed(
    series: Sequence[RunQuery], held: Mapping[RunQuery, int], runs: int, budget: int
) -> list[tuple[RunQuery, ...]]:
    """Return chunks of one metric each, of at most `runs` series and `budget` expected points (but one at the least).

    What comes first in `series` is in the first chunks: where the time does not suffice for all, the last ones lack it.
    """
    kinds: dict[str, list[RunQuery]] = {}
    for each in series:
        kinds.setdefault(each.metric, []).append(each)
    place = {each: number for number, each in enumerate(series)}
    chunks = (chunk for same in kinds.values() for chunk in _of_one_metric(same, held, runs, budget))
    return sorted(chunks, key=lambda chunk: place[chunk[0]])


def _of_one_metric(
    same: Iterable[RunQuery], held: Mapping[RunQuery, int], runs: int, budget: int
) -> Iterator[tuple[RunQuery, ...]]:
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
