"""The one error of the rig: its message is a single line meant for the person at the terminal."""

from pathlib import Path

LAST_LINES = 5


class RigError(Exception):
    """Something the rig needs is missing, or a part did not come up."""


def last_lines(log: Path) -> str:
    """Return a log's last lines for a message, those that name an error if any do; nothing without a log."""
    if not log.is_file():
        return ""
    lines = log.read_text(errors="replace").splitlines()
    # Some programs end with a page of advice after the one line that says what went wrong.
    named = [line for line in lines if "error" in line.lower()]
    return " | ".join((named or lines)[-LAST_LINES:])
