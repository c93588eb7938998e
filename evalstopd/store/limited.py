"""A connection to PostgreSQL that waits for no answer longer than a while: a server that hangs closes no connection."""

from collections.abc import Generator
from time import monotonic
from typing import Any

from psycopg import Connection, OperationalError

LIMIT_S = 15.0


class LimitedConnection(Connection[Any]):
    """Gives up, and closes itself, where the server has not answered for so long.

    The server's own limits (statement_timeout) do nothing while its process is stopped or its disk does not answer.
    """

    limit_s = LIMIT_S

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        """Wait for an operation as psycopg does; raises OperationalError past the limit."""
        return super().wait(self._limited(gen), *arguments, **named)

    def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass an operation through; psycopg wakes it up several times a second while nothing comes."""
        end = monotonic() + self.limit_s
        try:
            asked = next(gen)
            while True:
                ready = yield asked
                if monotonic() > end:
                    self.close()
                    raise OperationalError(f"no answer within {self.limit_s:g} s")
                asked = gen.send(ready)
        except StopIteration as done:
            return done.value
