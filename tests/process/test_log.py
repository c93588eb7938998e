"""The log's lines: for people with their time, for the journal with the priority that it keeps as a field."""

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from evalstopd.adapters.notify.log import journal_fields
from evalstopd.core.model import JobKey
from evalstopd.ports import Message

PROGRAM = """
import logging, os, pathlib, sys
from evalstopd.log import start_log
found = os.fstat(2)
stream = f"{found.st_dev}:{found.st_ino}" if sys.argv[1] == "journal" else "1:2"
start_log("DEBUG", {"JOURNAL_STREAM": stream}, pathlib.Path(sys.argv[2]))
log = logging.getLogger("evalstopd")
for level in ("debug", "info", "warning", "error", "critical"):
    getattr(log, level)("two\\nlines")
try:
    raise ValueError("one\\n<2>other")
except ValueError:
    log.exception("and why")
log.info("told", extra={"journal": {"JOB": "7\\nPRIORITY=0", "EVENT": "early", "USER": ""}})
log.info("last")
"""


def lines(where: str, journal: str = "/none") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, where, journal], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.splitlines()


def test_the_journal_gets_the_priority_of_each_line() -> None:
    found = lines("journal")

    assert found[:5] == [rf"<{number}>evalstopd: two\nlines" for number in (7, 6, 4, 3, 3)]
    assert found[5] == "<3>evalstopd: and why"
    assert found[-4:-2] == ["<3>  ValueError: one", "<3>  <2>other"]
    assert all(line.startswith("<3>  ") for line in found[6:-2])


def test_a_stream_that_is_not_the_journals_gets_lines_for_people() -> None:
    """The variable is inherited by what a service starts with its stderr elsewhere."""
    found = lines("elsewhere")

    assert found[0].endswith(r"DEBUG evalstopd: two\nlines")
    assert not any(line.startswith("<") for line in found)


def fields(record: bytes) -> dict[str, str]:
    """Read a record as the journal does (its native protocol), in the form with lengths."""
    found = {}
    while record:
        name, _, rest = record.partition(b"\n")
        (length,) = struct.unpack("<Q", rest[:8])
        assert rest[8 + length : 9 + length] == b"\n"
        found[name.decode()], record = rest[8 : 8 + length].decode(), rest[9 + length :]
    return found


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "journal"))
        made.settimeout(60)
        yield made


def test_the_journals_socket_gets_a_record_with_fields_that_nobodys_text_adds_to(journal: socket.socket) -> None:
    assert lines("journal", journal.getsockname()) == []
    found = [fields(journal.recv(65_536)) for _ in range(8)]

    assert [each["PRIORITY"] for each in found] == ["7", "6", "4", "3", "3", "3", "6", "6"]
    assert found[0] == {"MESSAGE": r"evalstopd: two\nlines", "PRIORITY": "7", "SYSLOG_IDENTIFIER": "evalstopd"}
    assert found[5]["MESSAGE"].endswith("\n  ValueError: one\n  <2>other")
    assert found[6]["EVALSTOPD_JOB"] == r"7\nPRIORITY=0"
    assert found[6]["EVALSTOPD_EVENT"] == "early"
    assert "EVALSTOPD_USER" not in found[6]


def test_a_journal_that_takes_nothing_holds_nobody_up_and_loses_no_line(journal: socket.socket) -> None:
    """Its queue is full: what does not fit goes to stderr, as without it."""
    journal.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    name = journal.getsockname()
    while fill(name):
        pass

    assert lines("journal", name) == lines("journal", "/none")


def fill(name: str) -> int:
    """Send as much as one sender may, which can be less than the queue takes; return how many records went in."""
    sent = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as filler, suppress(BlockingIOError):
        while True:
            sent += filler.sendto(b"x", name)
    return sent


def test_what_is_told_of_a_job_can_be_asked_for_by_it() -> None:
    """Its id, its owner, and which message it is; of what is told to the admin, no job."""
    message = Message(JobKey("alpha", "7", 1000, 5), "ada", "subject", "text", "early")

    assert journal_fields(message) == {"journal": {"EVENT": "early", "JOB": "7", "USER": "ada"}}
