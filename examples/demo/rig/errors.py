"""The one error of the rig: its message is a single line meant for the person at the terminal."""

from pathlib import Path

LAST_LINES = 5


class RigError(Exception):
    """Something the rig needs is missing, or a part did not come up."""


def last_lines(log: Path) -> str:
    """Return the end of a log for an error message, or nothing where there is no log."""
    if not log.is_file():
        return ""
    return " | ".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
