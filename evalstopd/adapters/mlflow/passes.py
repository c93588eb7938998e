"""One pass over many runs: a server that is down costs two time limits, not one a run, and no run costs another."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evalstopd.adapters.mlflow.http import Answer, Asks, Params
from evalstopd.adapters.mlflow.problems import NotAsked, Silent, Unreachable, is_its_own
from evalstopd.errors import EvalstopError, Unavailable

_T = TypeVar("_T")
_R = TypeVar("_R")


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

    Plainly not there: no connection (or 429, 503), or a time-out before anything was answered, or as many in a row,
    over all threads, as there are `workers`, and then no answer to the smallest question of all either. So heavy runs
    alone never end a pass, however many they are. The pass as a whole ends after `seconds`.
    """

    def __init__(self, http: Asks, workers: int, seconds: float) -> None:
        self._http = http
        self._patience = workers
        self._seconds = seconds
        self._end_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._silences = 0
        self._answered = False
        self._given_up: Unavailable | None = None

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
        self._check()
        try:
            answer = ask()
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
        self._silences = 0
        self._answered = True

    def _unheard(self, error: Unreachable | Silent) -> None:
        with self._lock:
            self._silences += 1
            if isinstance(error, Unreachable):
                self._given_up = self._given_up or error
            elif self._given_up is None and (self._silences >= self._patience or not self._answered):
                self._given_up = self._trouble_with_the_server()
                self._silences, self._answered = 0, True

    def _trouble_with_the_server(self) -> Unavailable | None:
        try:
            self._http.get("/experiments/search", {"max_results": "1"})
        except (Unreachable, Silent) as error:
            return error
        except EvalstopError:
            return None
        return None
