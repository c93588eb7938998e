"""The log's lines: for people with their time, for the journal with the priority that it keeps as a field."""

import subprocess
import sys

PROGRAM = """
import logging, os, sys
from evalstopd.log import start_log
found = os.fstat(2)
stream = f"{found.st_dev}:{found.st_ino}" if sys.argv[1] == "journal" else "1:2"
start_log("DEBUG", {"JOURNAL_STREAM": stream})
log = logging.getLogger("evalstopd")
for level in ("debug", "info", "warning", "error", "critical"):
    getattr(log, level)("two\\nlines")
"""


def lines(where: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, where], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.splitlines()


def test_the_journal_gets_the_priority_of_each_line() -> None:
    found = lines("journal")

    assert found[::2] == [f"<{number}>evalstopd: two" for number in (7, 6, 4, 3, 3)]
    assert found[1::2] == [f"<{number}>lines" for number in (7, 6, 4, 3, 3)]


def test_a_stream_that_is_not_the_journals_gets_lines_for_people() -> None:
    """The variable is inherited by what a service starts with its stderr elsewhere."""
    found = lines("elsewhere")

    assert found[0].endswith("DEBUG evalstopd: two")
    assert not any(line.startswith("<") for line in found)
