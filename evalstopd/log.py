"""The daemon's log: one line a record on stderr, where systemd takes it up."""

import logging
import sys
from types import TracebackType

from evalstopd.report.text import plain

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_MOST = 8000


class LogLines(logging.Formatter):
    """One line a record, whatever users' text is in it; a traceback's lines are indented, so that none forges one."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name is the base class's
        """Return the record as one line in which nothing acts."""
        return plain(super().formatMessage(record), _MOST)

    def formatException(  # noqa: N802  the name is the base class's
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Return a traceback whose every line is indented."""
        return "\n".join(f"  {plain(line, _MOST)}" for line in super().formatException(ei).split("\n"))


def start_log(level: str) -> None:
    """Log to stderr from `level` up; libraries only from WARNING up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(handlers=[handler], level="WARNING")
    logging.getLogger("evalstopd").setLevel(level)
    # A tick that takes long makes it complain of each one skipped; the summary sentence says as much.
    logging.getLogger("apscheduler").setLevel("ERROR")
