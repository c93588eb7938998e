"""Reads many series by the best way that works: bulk history, else bulk interval, else run by run as documented.

Whatever the way, the answer is the same points. A run that breaks a bulk answer is read alone from then on; a way
that fails although its runs can be read alone is left for a while, and tried again later.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.adapters.mlflow.bulk import MOST_RUNS, BulkRoute, Haul
from evalstopd.adapters.mlflow.footing import Footing
from evalstopd.adapters.mlflow.packing import packed
from evalstopd.adapters.mlflow.passes import Pass, side_by_side, tried, tried_twice
from evalstopd.adapters.mlflow.points import Caps, history, is_metric, too_many
from evalstopd.adapters.mlflow.problems import UNKNOWN_RUN, Busy, TooLong, is_its_own, one_line
from evalstopd.core.model import Point
from evalstopd.errors import EvalstopError
from evalstopd.ports import RunQuery

Series = tuple[Point, ...] | EvalstopError
_log = logging.getLogger("evalstopd.mlflow")
_MOST_REMEMBERED = 50_000
# A series with more points than this is read alone: in a bulk call it would crowd out its neighbours.
_LARGE = 5_000
_NO_RUN = "0" * 32


@dataclass(frozen=True, slots=True)
class Rung:
    """One bulk route and whether it works."""

    route: BulkRoute
    footing: Footing


Chunk = tuple[RunQuery, ...]
# A route, how it failed, and at which chunk; no chunk where it was not known to work before.
_Failure = tuple[Rung, EvalstopError, Chunk]


@dataclass(slots=True)
class Ladder:
    """The ways, best first; run by run is the last one and always there. Remembers how large each series was.

    `alone` are series that broke a bulk answer: they are read by themselves until they have been read so once. Of a
    `wide` one a bulk answer is too long even by itself: it is left to the documented way, page by page.
    """

    rungs: Sequence[Rung]
    caps: Caps
    workers: int
    _held: dict[RunQuery, int] = field(default_factory=dict)
    _alone: frozenset[RunQuery] = frozenset()
    _wide: set[RunQuery] = field(default_factory=set)

    def probed(self, now: Pass) -> str:
        """Return the name of the best way that answers a question about a run that is not there."""
        for rung in self.rungs:
            try:
                rung.route.ask(now, "evalstopd.probe", [_NO_RUN])
            except EvalstopError as error:
                if str(error) != UNKNOWN_RUN:
                    continue
            return rung.route.name
        return "a call for each run"

    def is_alone(self, series: RunQuery) -> bool:
        """Tell whether the series could not even be read by itself when last asked for."""
        return series in self._alone

    def read(self, now: Pass, series: Iterable[RunQuery]) -> dict[RunQuery, Series]:
        """Return each series' points by time, step and value, or why there are none. The first are asked first."""
        wanted = list(dict.fromkeys(series))
        found: dict[RunQuery, Series] = {}
        failed: list[_Failure] = []
        for rung in self.rungs:
            left = [each for each in wanted if each not in found and self._fits(each)]
            if left and rung.footing.holds:
                found |= self._climb(now, rung, left, failed)
        found |= self._one_by_one(now, [each for each in wanted if each not in found])
        self._learn(found)
        if not now.over:
            self._blame(found, failed)
        return {each: _ordered(points) for each, points in found.items()}

    def _fits(self, series: RunQuery) -> bool:
        apart = series in self._alone or series in self._wide
        return is_metric(series.metric) and not apart and self._held.get(series, 0) <= _LARGE

    def _climb(self, now: Pass, rung: Rung, left: Sequence[RunQuery], failed: list[_Failure]) -> dict[RunQuery, Series]:
        """Read by one bulk route what it can; where it is not known to work, one call goes ahead of the others."""
        chunks = packed(left, self._held, MOST_RUNS, rung.route.budget)
        if rung.footing.proven:
            return self._several(now, rung, chunks, failed)
        first = tried(lambda: self._chunk(now, rung.route, chunks[0]))
        if not isinstance(first, EvalstopError):
            rung.footing.worked()
            return first | self._several(now, rung, chunks[1:], failed)
        if isinstance(first, Busy):
            return dict.fromkeys(left, first)
        if is_its_own(first):
            failed.append((rung, first, ()))
        return {}

    def _several(
        self, now: Pass, rung: Rung, chunks: Sequence[Chunk], failed: list[_Failure]
    ) -> dict[RunQuery, Series]:
        found: dict[RunQuery, Series] = {}

        # By a way that is known to work.
        def ask(chunk: Chunk) -> dict[RunQuery, Series] | EvalstopError:
            return tried_twice(lambda: self._chunk(now, rung.route, chunk))

        answers = side_by_side(self.workers, ask, chunks)
        for chunk, answer in zip(chunks, answers, strict=True):
            if not isinstance(answer, EvalstopError):
                found |= answer
            elif isinstance(answer, Busy):
                # In another way they would be more questions to a server that asks for fewer.
                found |= dict.fromkeys(chunk, answer)
            elif is_its_own(answer):
                failed.append((rung, answer, chunk))
        return found

    def _chunk(self, now: Pass, route: BulkRoute, chunk: Sequence[RunQuery]) -> dict[RunQuery, Series]:
        """Read a chunk, in halves where the answer may have been cut; a series that cannot be whole is left out."""
        haul = self._asked(now, route, chunk)
        found: dict[RunQuery, Series] = {
            each: self._capped(haul.whole[each.run_id]) for each in chunk if each.run_id in haul.whole
        }
        if len(haul.cut) == len(chunk) > 1:
            middle = len(chunk) // 2
            for half in (chunk[:middle], chunk[middle:]):
                found |= self._chunk(now, route, half)
        return found

    def _asked(self, now: Pass, route: BulkRoute, chunk: Sequence[RunQuery]) -> Haul:
        """Ask for a chunk; an answer that is too long is one that was cut."""
        run_ids = [each.run_id for each in chunk]
        try:
            return route.ask(now, chunk[0].metric, run_ids)
        except TooLong:
            if len(chunk) == 1:
                self._wide.add(chunk[0])
            return Haul({}, frozenset(run_ids))

    def _capped(self, points: tuple[Point, ...]) -> Series:
        return points if len(points) <= self.caps.points else too_many(self.caps.points)

    def _one_by_one(self, now: Pass, left: Sequence[RunQuery]) -> dict[RunQuery, Series]:
        def read(each: RunQuery) -> Series:
            return tried(lambda: history(now, each, self.caps))

        return dict(zip(left, side_by_side(self.workers, read, left), strict=True))

    def _learn(self, found: Mapping[RunQuery, Series]) -> None:
        """Remember what was large, and what could not be read even by itself."""
        if len(self._held) + len(found) > _MOST_REMEMBERED:
            self._held, self._alone, self._wide = {}, frozenset(), set()
        self._held |= {each: len(points) for each, points in found.items() if not isinstance(points, EvalstopError)}
        fine = {each for each, answer in found.items() if not isinstance(answer, EvalstopError)}
        culprits = {each for each, answer in found.items() if is_its_own(answer)}
        self._alone = frozenset((self._alone - fine) | culprits)

    def _blame(self, found: Mapping[RunQuery, Series], failed: Sequence[_Failure]) -> None:
        """Leave a route that failed at its first chunk, or at one whose series could all be read otherwise.

        However many of its chunks did so in one pass, that is one failure: more would rest it for an hour at once.
        """
        blamed = {
            rung.route.name: (rung, error)
            for rung, error, chunk in failed
            if not any(is_its_own(found[each]) or isinstance(found[each], Busy) for each in chunk)
        }
        for name, (rung, error) in blamed.items():
            rung.footing.failed()
            _log.warning("%s is left for a while, runs are read in other ways: %s", name, one_line(error))


def _ordered(points: Series) -> Series:
    if isinstance(points, EvalstopError):
        return points
    # No order holds between a NaN and a number.
    return tuple(sorted(points, key=lambda each: (each.timestamp_ms, each.step, each.value != each.value, each.value)))
