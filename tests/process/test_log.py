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
try:
    raise ValueError("one\\n<2>other")
except ValueError:
    log.exception("and why")
"""


def lines(where: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, where], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.splitlines()


def test_the_journal_gets_the_priority_of_each_line() -> None:
    found = lines("journal")

    assert found[:5] == [rf"<{number}>evalstopd: two\nlines" for number in (7, 6, 4, 3, 3)]
    assert found[5] == "<3>evalstopd: and why"
    assert found[-2:] == ["<3>  ValueError: one", "<3>  <2>other"]
    assert all(line.startswith("<3>  ") for line in found[6:])


def test_a_stream_that_is_not_the_journals_gets_lines_for_people() -> None:
    """The variable is inherited by what a service starts with its stderr elsewhere."""
    found = lines("elsewhere")

    assert found[0].endswith(r"DEBUG evalstopd: two\nlines")
    assert not any(line.startswith("<") for line in found)
