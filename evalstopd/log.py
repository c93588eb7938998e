"""The daemon's log: one line a record on stderr, where systemd takes it up."""

import logging
import sys

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_log(level: str) -> None:
    """Log to stderr from `level` up; libraries only from WARNING up."""
    logging.basicConfig(stream=sys.stderr, level="WARNING", format=_FORMAT)
    logging.getLogger("evalstopd").setLevel(level)
    # A tick that takes long makes it complain of each one skipped; the summary sentence says as much.
    logging.getLogger("apscheduler").setLevel("ERROR")
