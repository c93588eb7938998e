"""The facts of many runs: remembered while they stand still, searched for together, else asked for one by one.

A run of a Hugging Face trainer has 150 parameters: reading them costs more than reading its evals. Facts that stood
still for a while are kept for as long again, two hours at most; whether a run was deleted meanwhile is asked each
time, which is cheap.
"""

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.adapters.mlflow import runs, search
from evalstopd.adapters.mlflow.footing import Footing
from evalstopd.adapters.mlflow.passes import Pass, side_by_side, tried, tried_twice
from evalstopd.adapters.mlflow.problems import Busy, Silent, TooMuch, is_its_own, one_line
from evalstopd.adapters.mlflow.search import View
from evalstopd.core.binding import RunFacts
from evalstopd.errors import EvalstopError, Unavailable

Facts = RunFacts | EvalstopError
_log = logging.getLogger("evalstopd.mlflow")
_LONGEST_S = 7_200.0
_MOST_REMEMBERED = 20_000
_MOST_HEAVY = 1_000
# So few are not worth the list of experiments that the first search needs.
_FEW = 4
_LIST_AGAIN_S = 300.0


@dataclass(frozen=True, slots=True)
class _Held:
    """Facts as they were read at `read_at`, the same since `since`. Seconds of our own clock."""

    facts: RunFacts
    since: float
    read_at: float


@dataclass(frozen=True, slots=True)
class _Searched:
    """What searches showed of runs, and the runs of those searches that could not be made."""

    shown: Mapping[str, Facts]
    unasked: Collection[str] = ()


class Roster:
    """Remembers the facts of runs between passes. Without a footing for searches it asks for each run each time."""

    def __init__(self, footing: Footing | None, workers: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._footing = footing
        self._workers = workers
        self._now_s = now_s
        self._held: dict[str, _Held] = {}
        self._experiments: tuple[str, ...] = ()
        self._listed_at = float("-inf")
        self._heavy: frozenset[str] = frozenset()
        self._outcomes: list[EvalstopError | None] = []

    def forget(self, run_id: str) -> None:
        """Read this run anew the next time: it was written to."""
        self._held.pop(run_id, None)

    def is_heavy(self, run_id: str) -> bool:
        """Tell whether the run's facts could not be read in time, or were too many, when last asked for."""
        return run_id in self._heavy

    def read(self, now: Pass, needs: Mapping[str, Collection[str]], anew: Collection[str]) -> dict[str, Facts]:
        """Return each run's facts, or why there are none.

        `needs` has the metrics that remembered facts must name to be good enough; the runs of `anew` are read now.
        """
        kept = {run_id: held.facts for run_id in needs if (held := self._kept(run_id, needs[run_id], anew))}
        gone = self._searched(now, list(kept), "DELETED_ONLY")
        unsure = frozenset(gone.unasked)
        known = {**{run_id: facts for run_id, facts in kept.items() if run_id not in unsure}, **gone.shown}
        known |= self._read_now(now, [run_id for run_id in needs if run_id not in known])
        self._judge_searches(now)
        return known

    def _kept(self, run_id: str, metrics: Collection[str], anew: Collection[str]) -> _Held | None:
        held = self._held.get(run_id)
        if held is None or run_id in anew or not held.facts.metrics.issuperset(metrics):
            return None
        stood_still_s, age_s = held.read_at - held.since, self._now_s() - held.read_at
        return held if age_s <= min(stood_still_s, _LONGEST_S) else None

    def _read_now(self, now: Pass, run_ids: Sequence[str]) -> dict[str, Facts]:
        found = self._by_search(now, [each for each in run_ids if runs.is_run_id(each)])
        left = [run_id for run_id in run_ids if run_id not in found]

        def ask(run_id: str) -> Facts:
            return tried(lambda: runs.facts(now, run_id))

        alone = dict(zip(left, side_by_side(self._workers, ask, left), strict=True))
        read = {**found, **alone}
        self._learn({run_id: each for run_id, each in found.items() if isinstance(each, RunFacts)}, alone)
        self._note_heavy(read)
        return read

    def _by_search(self, now: Pass, run_ids: Sequence[str]) -> Mapping[str, Facts]:
        if not run_ids or (not self._experiments and len(run_ids) <= _FEW):
            return {}
        return self._searched(now, run_ids, "ALL").shown

    def _searched(self, now: Pass, run_ids: Sequence[str], view: View) -> _Searched:
        """Return what searches show of these runs."""
        chunks = list(_chunks(run_ids, search.MOST_IDS[view]))
        if not chunks or self._footing is None or not self._footing.holds:
            return _Searched({}, run_ids)
        answers = self._answers(now, chunks, view)
        self._outcomes += [each if isinstance(each, EvalstopError) else None for each in answers]
        shown, unasked = dict[str, Facts](), list[str]()
        for chunk, answer in zip(chunks, answers, strict=True):
            if isinstance(answer, Busy):
                # Asked for one by one they would be a hundred questions more to a server that asks for fewer.
                shown |= dict.fromkeys(chunk, answer)
            elif isinstance(answer, EvalstopError):
                unasked += chunk
            else:
                shown |= answer
        return _Searched(shown, unasked)

    def _answers(
        self, now: Pass, chunks: Sequence[Sequence[str]], view: View
    ) -> Sequence[Mapping[str, Facts] | EvalstopError]:
        listed = self._experiments or tried_twice(lambda: search.experiments(now, "ALL"))
        if isinstance(listed, EvalstopError):
            return [listed for _ in chunks]
        if not self._experiments:
            self._experiments, self._listed_at = listed, self._now_s()

        def ask(chunk: Sequence[str]) -> Mapping[str, Facts] | EvalstopError:
            return tried_twice(lambda: search.found(now, listed, chunk, view))

        return side_by_side(self._workers, ask, chunks)

    def _judge_searches(self, now: Pass) -> None:
        """Leave searching for a while where no search of the pass worked, and the fault was its own.

        One that fails beside others that work costs its own runs a call each, and nobody else.
        """
        outcomes, self._outcomes = self._outcomes, []
        failure = next(filter(is_its_own, outcomes), None)
        if self._footing is None:
            return
        if None in outcomes:
            self._footing.worked()
        elif failure is not None and not now.over:
            self._footing.failed()
            _log.warning("searching is left for a while, runs are asked for one by one: %s", one_line(failure))

    def _learn(self, found: Mapping[str, RunFacts], alone: Mapping[str, Facts]) -> None:
        """Remember what a search can tell to be deleted later, and no other run."""
        if len(self._held) + len(found) > _MOST_REMEMBERED:
            self._held = {}
        for run_id, answer in alone.items():
            if not isinstance(answer, Unavailable):
                self.forget(run_id)
        for run_id, facts in found.items():
            self._held[run_id] = self._as_held(self._held.get(run_id), _shared(facts))
        missed = any(isinstance(each, RunFacts) for each in alone.values())
        if missed and self._now_s() >= self._listed_at + _LIST_AGAIN_S:
            # A run that is there and was not found may be in an experiment that is newer than the list.
            self._experiments = ()

    def _as_held(self, before: _Held | None, facts: RunFacts) -> _Held:
        now_s = self._now_s()
        same = before is not None and before.facts == facts
        return _Held(facts, before.since if same and before is not None else now_s, now_s)

    def _note_heavy(self, read: Mapping[str, Facts]) -> None:
        heavy = {run_id for run_id, facts in read.items() if isinstance(facts, (Silent, TooMuch))}
        # A run that was not asked this time is still what it was.
        older = self._heavy - {run_id for run_id, facts in read.items() if isinstance(facts, RunFacts)}
        self._heavy = frozenset(heavy | older) if len(older) < _MOST_HEAVY else frozenset(heavy)


def _chunks(run_ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(run_ids), size):
        yield run_ids[start : start + size]


def _shared(facts: RunFacts) -> RunFacts:
    """Return the facts with one copy of each text: runs of the same trainer say the same 150 things."""
    return replace(
        facts,
        tags=_interned(facts.tags.items()),
        params=_interned(facts.params.items()),
        metrics=frozenset(map(sys.intern, facts.metrics)),
    )


def _interned(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {sys.intern(key): sys.intern(value) for key, value in pairs}
