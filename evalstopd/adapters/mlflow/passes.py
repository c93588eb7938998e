"""One pass over many runs: a server that is down costs two time limits, not one a run, and no run costs another."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evalstopd.adapters.mlflow.http import Answer, Asks, Params
from evalstopd.adapters.mlflow.later import pause_s
from evalstopd.adapters.mlflow.problems import Busy, NotAsked, Silent, Unreachable, is_its_own
from evalstopd.errors import EvalstopError, Unavailable

_T = TypeVar("_T")
_R = TypeVar("_R")
# How much of a pass's time one question may wait for a busy server: all other jobs wait with it.
_LONGEST_WAIT = 0.25


def side_by_side(workers: int, work: Callable[[_T], _R], of: Sequence[_T]) -> list[_R]:
    """Return what `work` makes of each, in order, by so many threads."""
    if len(of) < 2:
        return [work(each) for each in of]
    with ThreadPoolExecutor(workers, thread_name_prefix="mlflow-read") as pool:
        return list(pool.map(work, of))


def tried(ask: Callable[[], _R]) -> _R | EvalstopError:
    """Return the answer, or why there is none."""
    try:
        return ask()
    except EvalstopError as error:
        return error


def tried_twice(ask: Callable[[], _R]) -> _R | EvalstopError:
    """Return the answer, or why there is none; what fails at once may have failed by chance, and is asked once more.

    Real servers do: under CPython 3.11 some searches of several threads of MLflow's end in HTTP 500 by chance.
    """
    answer = tried(ask)
    return tried(ask) if is_its_own(answer) and not isinstance(answer, Silent) else answer


class Pass:
    """Asks on behalf of many runs until the server is plainly not there, then fails fast.

    Plainly not there: no connection (or 503), or a time-out before anything was answered, or as many in a row,
    over all threads, as there are `workers`, and then no answer to the smallest question of all either. So heavy runs
    alone never end a pass, however many they are. The pass as a whole ends after `seconds`.

    A question that a busy server puts off (429) waits as long as the server asks, where the pass has the time, and is
    put once more; the others go on meanwhile. As many put off in a row as there are `workers` are the whole server's.
    """

    def __init__(self, http: Asks, workers: int, seconds: float) -> None:
        self._http = http
        self._patience = workers
        self._seconds = seconds
        self._end_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._silences = 0
        self._answered = False
        self._put_off = 0
        self._given_up: Unavailable | None = None
        self._ended = threading.Event()

    @property
    def over(self) -> bool:
        """Tell whether the server was given up, so that nothing that failed was anybody's own fault."""
        return self._given_up is not None

    def get(self, path: str, params: Params) -> Answer:
        """Ask MLflow. Raises Unavailable (at once where the pass is over) or Rejected."""
        return self._asked(lambda: self._http.get(path, params))

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Ask MLflow what takes a body. Raises as `get` does."""
        return self._asked(lambda: self._http.post(path, body))

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return self._once(ask)
        except Busy as busy:
            self._wait(busy)
        return self._once(ask)

    def _wait(self, busy: Busy) -> None:
        """Wait for a busy server, and no longer than the pass goes on. Raises what it is given where time is short."""
        wait_s = pause_s(busy.after_s)
        if wait_s > self._seconds * _LONGEST_WAIT or time.monotonic() + wait_s > self._end_at:
            raise busy
        self._ended.wait(wait_s)

    def _once(self, ask: Callable[[], Answer]) -> Answer:
        self._check()
        try:
            answer = ask()
        except Busy as busy:
            self._busy(busy)
            raise
        except (Unreachable, Silent) as error:
            self._unheard(error)
            raise
        except EvalstopError:
            self._heard()
            raise
        self._heard()
        return answer

    def _check(self) -> None:
        if self._given_up is not None:
            raise NotAsked(f"not asked: {self._given_up}") from self._given_up
        if time.monotonic() > self._end_at:
            raise NotAsked(f"not asked: reading took longer than {self._seconds:g} s in all")

    def _heard(self) -> None:
        self._silences = self._put_off = 0
        self._answered = True

    def _busy(self, error: Busy) -> None:
        with self._lock:
            self._silences, self._answered = 0, True
            self._put_off += 1
            # One thread alone that is put off twice has met a busy moment, not yet a busy server.
            if self._put_off >= max(self._patience, 2):
                self._give_up(error)

    def _give_up(self, error: Unavailable | None) -> None:
        self._given_up = self._given_up or error
        if self._given_up is not None:
            self._ended.set()

    def _unheard(self, error: Unreachable | Silent) -> None:
        with self._lock:
            self._silences += 1
            if isinstance(error, Unreachable):
                self._give_up(error)
            elif self._given_up is None and (self._silences >= self._patience or not self._answered):
                self._give_up(self._trouble_with_the_server())
                self._silences, self._answered = 0, True

    def _trouble_with_the_server(self) -> Unavailable | None:
        try:
            self._http.get("/experiments/search", {"max_results": "1"})
        except (Unreachable, Silent) as error:
            return error
        except EvalstopError:
            return None
        return None
