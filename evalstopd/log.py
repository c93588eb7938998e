"""The daemon's log: one line a record on stderr, where systemd takes it up, with the priority that journald knows."""

import logging
import os
import sys
from collections.abc import Mapping

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_JOURNAL_FORMAT = "%(name)s: %(message)s"
# syslog(3): err, warning, info, debug.
_PRIORITIES = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))


class JournalFormatter(logging.Formatter):
    """Begins each line with its priority, `<4>` say, which journald takes off and keeps as a field (sd-daemon(3)).

    The journal has the time itself.
    """

    def __init__(self) -> None:
        super().__init__(_JOURNAL_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record, each line of a traceback with the same priority."""
        number = next((number for least, number in _PRIORITIES if record.levelno >= least), 7)
        return "\n".join(f"<{number}>{line}" for line in super().format(record).splitlines())


def start_log(level: str, environment: Mapping[str, str] = os.environ) -> None:
    """Log to stderr from `level` up; libraries only from WARNING up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JournalFormatter() if _is_journal(environment) else logging.Formatter(_FORMAT))
    logging.basicConfig(handlers=[handler], level="WARNING")
    logging.getLogger("evalstopd").setLevel(level)
    # A tick that takes long makes it complain of each one skipped; the summary sentence says as much.
    logging.getLogger("apscheduler").setLevel("ERROR")


def _is_journal(environment: Mapping[str, str]) -> bool:
    """Tell whether stderr is the journal's: its device and inode are what systemd says (systemd.exec(5))."""
    found = os.fstat(sys.stderr.fileno())
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
