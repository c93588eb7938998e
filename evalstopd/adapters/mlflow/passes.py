"""One pass over many runs: a server that is down costs two time limits, not one a run, and no run costs another."""

import threading
import time
from collections.abc import Callable, Mapping

from evalstopd.adapters.mlflow.http import Answer, Asks
from evalstopd.adapters.mlflow.problems import Silent, Unreachable
from evalstopd.errors import EvalstopError, Unavailable


class Pass:
    """Asks on behalf of many runs until the server is plainly not there, then fails fast.

    Plainly not there: no connection (or 429, 503), or more time-outs in a row, over all threads, than there are
    `workers`. A few heavy runs alone never reach that: whatever the server answers meanwhile starts the count
    anew. The pass as a whole ends after `seconds`.
    """

    def __init__(self, http: Asks, workers: int, seconds: float) -> None:
        self._http = http
        self._patience = workers
        self._seconds = seconds
        self._end_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._silences = 0
        self._given_up: Unavailable | None = None

    def get(self, path: str, params: Mapping[str, str]) -> Answer:
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
            raise Unavailable(f"not asked: {self._given_up}") from self._given_up
        if time.monotonic() > self._end_at:
            raise Unavailable(f"not asked: reading took longer than {self._seconds:g} s in all")

    def _heard(self) -> None:
        with self._lock:
            self._silences = 0

    def _unheard(self, error: Unreachable | Silent) -> None:
        with self._lock:
            self._silences += 1
            if isinstance(error, Unreachable) or self._silences > self._patience:
                self._given_up = self._given_up or error
