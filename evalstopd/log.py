"""The daemon's log: one line a record, on stderr or, under systemd, as a record of the journal with its fields."""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from evalstopd.journal import SOCKET, JournalHandler
from evalstopd.report.text import plain

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_JOURNAL_FORMAT = "%(name)s: %(message)s"
# syslog(3): err, warning, info, debug.
_PRIORITIES = {logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6}
_MOST = 8000


class LogLines(logging.Formatter):
    """One line a record, whatever users' text is in it; a traceback's lines are indented, so that none forges one."""

    def __init__(self, form: str = _FORMAT) -> None:
        super().__init__(form)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name is the base class's
        """Return the record as one line in which nothing acts."""
        return plain(super().formatMessage(record), _MOST)

    def formatException(  # noqa: N802  the name is the base class's
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Return a traceback whose every line is indented."""
        return "\n".join(f"  {plain(line, _MOST)}" for line in super().formatException(ei).split("\n"))


class JournalFormatter(LogLines):
    """Begins each line with its priority, `<4>` say, which journald takes off and keeps as a field (sd-daemon(3)).

    The journal has the time itself.
    """

    def __init__(self) -> None:
        super().__init__(_JOURNAL_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record, each line of a traceback with the same priority."""
        number = next((number for least, number in _PRIORITIES.items() if record.levelno >= least), 7)
        return "\n".join(f"<{number}>{line}" for line in super().format(record).splitlines())


def start_log(level: str, environment: Mapping[str, str] = os.environ, journal: Path = SOCKET) -> None:
    """Log from `level` up, libraries only from WARNING up; to the journal where stderr is its, else to stderr."""
    logging.basicConfig(handlers=[_handler(journal, in_journal=_is_journal(environment))], level="WARNING")
    logging.getLogger("evalstopd").setLevel(level)
    # A tick that takes long makes it complain of each one skipped; the summary sentence says as much.
    logging.getLogger("apscheduler").setLevel("ERROR")


def _handler(journal: Path, *, in_journal: bool) -> logging.Handler:
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(JournalFormatter() if in_journal else LogLines())
    if not in_journal or not journal.is_socket():
        return stream
    handler = JournalHandler(journal, _PRIORITIES, stream)
    handler.setFormatter(LogLines(_JOURNAL_FORMAT))
    return handler


def _is_journal(environment: Mapping[str, str]) -> bool:
    """Tell whether stderr is the journal's: its device and inode are what systemd says (systemd.exec(5))."""
    try:
        found = os.fstat(sys.stderr.fileno())
    except OSError:
        return False  # a stream that is no file, as where a program calls the command line
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
